// Lists: partitions furthest behind, rebalances, members, actors, errors.

import { byId, bytes, chip, clock, count, el, keep, linkTo, reasons, short, span, text, trend } from './dom.js';
import { now } from './live.js';

const MOST_LAGGARDS = 10;
const MOST_ENTRIES = 40;
let view = null;

export function startLists(draw) {
  byId('when-form').addEventListener('submit', event => {
    event.preventDefault();
    byId('timeline').querySelector('li')?.focus();
  });
  byId('when').addEventListener('input', draw);
}

export function drawLists(now) {
  view = now;
  drawLaggards();
  drawTimeline();
  drawMembers(now);
  drawActors();
  drawErrors();
}

/** A table whose cells carry their column's name, for narrow screens; `cells(row)` are elements or words. */
function table(parent, caption, columns, rows, key, cells, empty) {
  let shown = parent.querySelector('table');
  if (!rows.length) return parent.replaceChildren(el('p', { class: 'quiet' }, empty));
  if (!shown) {
    const head = el('tr', {}, columns.map(([name, is]) => el('th', { scope: 'col', class: is }, name)));
    shown = el('table', {}, el('caption', { class: 'unseen' }, caption), el('thead', {}, head), el('tbody'));
    parent.replaceChildren(shown);
  }
  const make = () => el('tr', {}, columns.map(([name, is]) => el('td', { 'data-name': name, class: is })));
  keep(shown.tBodies[0], rows, key, make, (row, item) => {
    cells(item).forEach((cell, index) => fill(row.children[index], cell));
  });
}

/** Words, or `{like, make}`: an element that is made anew only when `like` differs. */
function fill(cell, value) {
  if (typeof value === 'string') return text(cell, value);
  if (cell.like === value.like) return;
  cell.like = value.like;
  cell.replaceChildren(...[value.make()].flat());
}

const owner = id => ({ like: `${id} ${view.marks.get(id)}`, make: () => (id ? [chip(view.marks.get(id), id), el('span', { class: 'name' }, id)] : 'nobody') });

function drawLaggards() {
  const worst = view.partitions.filter(of => of.it.get('lag') > 0).sort((a, b) => b.it.get('lag') - a.it.get('lag')).slice(0, MOST_LAGGARDS);
  const most = Math.max(1, worst[0]?.it.get('lag') ?? 1);
  const link = ({ topic, number }) => ({ like: '', make: () => el('a', { href: linkTo({ topic, number }) }, `${topic} ${number}`) });
  const bar = lag => ({ like: lag / most, make: () => el('span', { class: 'bar', 'aria-hidden': 'true' }, el('span', { '--part': lag / most })) });
  const moves = (each, lag) => {
    const { is, sign, words } = trend(each);
    const few = lag < 100 && is === 'growing';
    return { like: words + few, make: () => el('span', { 'data-is': few ? 'steady' : is, class: 'trend' }, sign ? el('span', { 'aria-hidden': 'true' }, sign) : '', words || 'not known yet') };
  };
  table(byId('laggards'), 'Partitions furthest behind', [['Partition'], ['Lag', 'number'], ['', 'wide'], ['Trend'], ['Owner']], worst,
    of => `${of.topic}/${of.number}`, of => [link(of), count(of.it.get('lag')), bar(of.it.get('lag')), moves(of.it.get('trend'), of.it.get('lag')), owner(of.it.get('member'))],
    'No partition is behind.');
}

/** Rebalances of members here, and all members that came or went: why the others rebalanced. */
function drawTimeline() {
  const wanted = byId('when').value.trim().toLowerCase();
  const entry = (key, it) => (it.has('came')
    ? { key: `m ${key}`, it, is: it.get('came') ? 'came' : 'went', why: `${it.get('member')} ${it.get('came') ? 'joined' : 'left'}`, tag: '', did: '' }
    : { key, it, is: it.get('outcome').replaceAll('_', '-'), why: reasons(it) || 'no reason told', tag: it.get('outcome').replaceAll('_', ' '), did: did(it) });
  const all = [...view.group.get('rebalances'), ...view.group.get('changes')].map(([key, it]) => entry(key, it));
  all.sort((a, b) => b.it.get('at') - a.it.get('at') || (a.key < b.key ? 1 : -1));
  const words = ({ it, why, tag, did }) => `${clock(it.get('at'))} ${why} ${tag} ${did} ${it.get('reasons')?.join(' ') ?? ''}`.toLowerCase();
  const found = all.filter(of => !wanted || words(of).includes(wanted));
  const make = () => el('li', { tabindex: '-1' }, el('time'), el('div', { class: 'what' }, el('p', { class: 'why' }), el('p', { class: 'did quiet' }), el('p', { class: 'error' })));
  keep(byId('timeline'), found.slice(0, MOST_ENTRIES), of => of.key, make, (child, of) => {
    const mark = of.it.get('mark') ?? view.marks.get(of.it.get('member'));
    const like = words(of) + mark;
    if (child.like === like) return;
    child.like = like;
    const [time, what] = child.children;
    child.dataset.is = of.is;
    text(time, clock(of.it.get('at')));
    time.setAttribute('datetime', new Date(of.it.get('at')).toISOString());
    what.children[0].replaceChildren(chip(mark, of.it.get('member')), el('strong', {}, of.why), of.tag ? el('span', { class: 'tag' }, of.tag) : '');
    text(what.children[1], of.did);
    text(what.children[2], of.it.get('error') ?? '');
  });
  note('timeline', found.length ? '' : all.length ? `None of ${count(all.length)} matches “${wanted}”.` : 'None yet.');
}

function did(it) {
  const parts = ['kept', 'claimed', 'released', 'moved'].filter(name => it.get(name)).map(name => `${name} ${count(it.get(name))}`);
  const waited = it.get('waited');
  if (waited.length) parts.push(`waited for ${waited.slice(0, 3).join('; ')}${waited.length > 3 ? ` and ${waited.length - 3} more` : ''}`);
  return `${it.get('member')} took ${it.get('took')} ms${parts.length ? ': ' : ''}${parts.join(', ')}`;
}

/** Words after a list that is empty; none when there is something in it. */
export function note(id, words) {
  const list = byId(id);
  let said = list.nextElementSibling?.matches('.none') ? list.nextElementSibling : null;
  if (!words) return said?.remove();
  if (!said) list.after(said = el('p', { class: 'none quiet' }));
  text(said, words);
}

export function drawMembers(now) {
  view = now;
  const owned = Map.groupBy(view.partitions, of => of.it.get('member'));
  // those that may lose their session first
  const left = of => of.member.get('session')?.get('lease') ?? Infinity;
  const rows = [...view.members].sort((a, b) => Number(isWell(a)) - Number(isWell(b)) || left(a) - left(b) || a.mark - b.mark);
  const about = ({ member }) => (member.get('here') ? `${member.get('phase')}, rebalance ${member.get('generation')}` : member.get('subscription') || member.get('error') || '');
  table(byId('member-table'), 'Members', [['Member'], ['Session'], ['Partitions', 'number'], ['Records/s', 'number'], ['About']], rows, of => of.id,
    of => [owner(of.id), session(of), count(owned.get(of.id)?.length ?? 0), of.member.get('here') ? short(of.member.get('rate')) : '–', about(of)],
    'No members are known.');
}

const isWell = ({ member }) => !member.get('session') || member.get('session').get('state') === 'connected';

function session({ member }) {
  const its = member.get('session');
  if (!its) {
    const since = member.get('since');
    return since ? `registered for ${span(now() - since)}, in another process` : 'in another process';
  }
  const whole = its.get('timeout') * 2 / 3 || 1;
  const state = its.get('state');
  // while it is connected, each heartbeat begins the lease anew
  const passed = state === 'connected' ? 0 : now() - view.group.get('at');
  const lease = Math.max(0, its.get('lease') - passed);
  const part = Math.min(1, lease / whole);
  const is = state !== 'connected' || part < 0.5 ? 'bad' : 'good';
  const words = lease ? `${(lease / 1000).toFixed(1)} s of ${(whole / 1000).toFixed(1)} s left` : 'over: nothing is delivered';
  return { like: state + words, make: () => [
    el('span', { class: 'lease', 'data-is': is }, el('span', { class: 'state' }, state), el('span', { class: 'bar', 'aria-hidden': 'true' }, el('span', { '--part': part })), el('span', { class: 'quiet' }, `lease ${words}`)),
  ] };
}

function drawActors() {
  const here = view.members.filter(of => of.member.get('here'));
  const make = of => el('details', { open: here.length <= 2 }, el('summary', {}, chip(of.mark, of.id), el('span', { class: 'name' }, of.id), ' ', el('span', { class: 'quiet' })), el('div'), el('div'));
  keep(byId('actor-tables'), here, of => of.id, make, (child, of) => {
    const actors = [...of.member.get('actors')].sort();
    const restarts = actors.reduce((sum, [, actor]) => sum + actor.get('restarts'), 0);
    text(child.querySelector('summary .quiet'), `${actors.length} actors, ${count(restarts)} restart${restarts === 1 ? '' : 's'}`);
    const streams = of.member.get('streams');
    const streamOf = name => streams.get(name.replace('stream-queue/', ''));
    const queue = name => {
      const stream = streamOf(name);
      return stream ? `${count(stream.get('chunks'))} chunks, ${bytes(stream.get('bytes'))}` : '';
    };
    const answers = (name, actor) => {
      const took = actor.get('answered');
      if (took !== undefined) return took > 250 ? { like: took, make: () => el('span', { 'data-is': 'bad' }, `${count(took)} ms`) } : `${count(took)} ms`;
      return name.startsWith('broker-fetcher') ? '' : { like: 'no', make: () => el('span', { 'data-is': 'bad' }, 'no answer') };
    };
    const passed = name => {
      const stream = streamOf(name);
      const parts = [['skipped', 'skipped'], ['dead_letters', 'dead letters']].filter(([key]) => stream?.get(key));
      return parts.map(([key, words]) => `${count(stream.get(key))} ${words}`).join(', ');
    };
    const times = number => (number ? { like: number, make: () => el('span', { 'data-is': 'bad' }, count(number)) } : '0');
    table(child.children[1], `Actors of ${of.id}`, [['Actor'], ['Messages', 'number'], ['Mailbox answers in', 'number'], ['Queued', 'number'], ['Restarts', 'number'], ['Handler restarts', 'number'], ['Passed over', 'number']], actors, ([name]) => name,
      ([name, actor]) => [name, count(actor.get('handled')), answers(name, actor), queue(name), times(actor.get('restarts')), streamOf(name) ? times(streamOf(name).get('restarts')) : '', passed(name)], 'No actors.');
    const brokers = [...of.member.get('brokers')].sort();
    table(child.children[2], `Brokers of ${of.id}`, [['Broker'], ['Connection'], ['Partitions', 'number'], ['Fetches', 'number'], ['Bytes', 'number']], brokers, ([name]) => name,
      ([name, broker]) => [`${name.replace(/-0$/, '')} at ${broker.get('address')}`, broker.get('connected') ? 'connected' : { like: 'not', make: () => el('span', { 'data-is': 'bad' }, 'not connected') }, count(broker.get('partitions')), count(broker.get('requests')), bytes(broker.get('bytes'))], 'No brokers are fetched from.');
  });
  note('actor-tables', here.length ? '' : 'No member of this process is known.');
}

function drawErrors() {
  const all = [...view.group.get('errors')].sort(([a], [b]) => (a < b ? 1 : -1)).slice(0, MOST_ENTRIES);
  const make = () => el('li', {}, el('time'), el('div', { class: 'what' }, el('p', { class: 'why' }), el('p', { class: 'did quiet' })));
  keep(byId('error-list'), all, ([key]) => key, make, (child, [, it]) => {
    child.dataset.is = it.has('until') ? 'over' : 'bad';
    text(child.firstElementChild, clock(it.get('at')));
    const [why, place] = child.lastElementChild.children;
    text(why, it.get('text'));
    text(place, `${it.get('member')}, ${it.get('place')}; ${it.has('until') ? `until ${clock(it.get('until'))}` : 'still so'}`);
  });
  note('error-list', all.length ? '' : 'None so far.');
}
