// The page: which group is shown, its summary, what needs attention, the theme, and how the connection is.

import { byId, bytes, clock, count, el, keep, linkTo, short, span, text, trend } from './dom.js';
import { follow, groups, link, now, samples } from './live.js';
import { drawDetail, drawPartitions, select, startPartitions } from './partitions.js';
import { drawPlots, startPlots } from './plots.js';
import { drawLists, drawMembers, startLists } from './lists.js';

let shown = null;

/** What all parts of the page draw: one group, flattened a little. */
function view() {
  const group = groups.get(shown);
  if (!group) return null;
  const members = [...group.get('members')].map(([id, member]) => ({ id, member, mark: member.get('mark') }));
  members.sort((a, b) => a.mark - b.mark);
  const partitions = [];
  for (const topic of [...group.get('topics').keys()].sort()) {
    const numbers = [...group.get('topics').get(topic)].map(([number, it]) => ({ topic, number: Number(number), it }));
    partitions.push(...numbers.sort((a, b) => a.number - b.number));
  }
  return { key: shown, group, members, partitions, samples: samples.get(shown) ?? [], marks: new Map(members.map(of => [of.id, of.mark])) };
}

/** All, or only what time changes. */
function draw(all = true) {
  drawLink();
  if (!groups.has(shown)) shown = [...groups.keys()].sort((a, b) => a - b)[0] ?? null;
  const now = view();
  document.body.classList.toggle('empty', !now);
  drawSwitch();
  if (!now) return;
  drawAttention(now);
  if (!all) {
    drawDetail();
    return drawMembers(now);
  }
  drawTiles(now);
  drawPartitions(now);
  drawPlots(now);
  drawLists(now);
}

function drawLink() {
  const words = { connecting: 'connecting', live: 'live', lost: 'reconnecting', ended: 'ended' };
  byId('link').dataset.is = link.is;
  text(byId('link-text'), words[link.is]);
  const late = link.is === 'lost' && Date.now() - link.since > 3000;
  document.body.classList.toggle('stale', late || link.is === 'ended');
  const banner = byId('banner');
  banner.hidden = !(late || link.is === 'ended' || (link.is === 'live' && groups.size === 0));
  if (banner.hidden) return;
  if (link.is === 'ended') {
    const at = groups.get(shown)?.get('ended');
    text(banner, `The consumers of this process have shut down${at ? ` at ${clock(at)}` : ''}. What you see is how they stood last.`);
  } else if (late) {
    const heard = link.heard ? ` What you see is from ${clock(link.heard - link.skew)}.` : '';
    text(banner, `The connection to the server is lost since ${clock(link.since)}; trying again.${heard}`);
  } else text(banner, 'No system has answered yet. The first sample comes within two seconds.');
}

function drawSwitch() {
  const all = [...groups].sort(([a], [b]) => a - b);
  const name = group => group.get('group');
  const twice = group => all.filter(([, other]) => name(other) === name(group)).length > 1;
  byId('pick').hidden = all.length < 2;
  byId('group-name').hidden = all.length !== 1;
  keep(byId('group'), all, ([key]) => key, ([key]) => el('option', { value: key }), (option, [, group]) => {
    text(option, twice(group) ? `${name(group)} on ${group.get('cluster')}` : name(group));
  });
  byId('group').value = shown;
  const group = groups.get(shown);
  text(byId('group-name'), group ? name(group) : '');
  text(byId('cluster'), group ? group.get('cluster') : '');
  document.title = group ? `${name(group)} · Troupe` : 'Troupe';
}

function tile(name, value, more, is = '') {
  return { name, value, more, is };
}

function drawTiles({ group, members, partitions, samples }) {
  const totals = group.get('totals');
  const owned = partitions.filter(of => of.it.get('state') !== 'unowned').length;
  const flows = partitions.filter(of => !of.it.get('state')).length;
  const before = samples.findLast(row => row[0] <= group.get('at') - 60000) ?? samples[0];
  const seconds = before ? (group.get('at') - before[0]) / 1000 : 0;
  const lag = trend(seconds >= 8 ? (totals.get('lag') - before[1]) / seconds : undefined);
  const here = members.filter(of => of.member.get('here')).length;
  const why = group.get('why');
  const all = [
    tile('Health', group.get('health'), why[0] ?? HEALTH[group.get('health')] ?? '', group.get('health')),
    tile('Partitions', `${count(owned)} of ${count(partitions.length + group.get('left_out'))}`, flows === partitions.length ? 'owned, and all flow' : `owned; ${count(partitions.length - flows)} do not flow`, flows === partitions.length ? '' : 'failing'),
    tile('Lag', short(totals.get('lag')), [lag.sign, lag.words || 'records'].filter(Boolean).join(' '), lag.is),
    tile('Throughput', `${short(totals.get('records'))}/s`, `${bytes(totals.get('bytes'))}/s handled here`),
    tile('Members', count(members.length), group.has('read') ? `${count(here)} in this process` : 'others are not known'),
  ];
  keep(byId('tiles'), all, it => it.name, it => el('div', { class: 'tile' }, el('h2', {}, it.name), el('p', { class: 'value' }), el('p', { class: 'more' })), (child, it) => {
    child.dataset.is = it.is;
    text(child.children[1], it.value);
    text(child.children[2], it.more);
    child.children[2].title = it.more;
  });
}

/** What somebody should look at, the worst first. */
function drawAttention({ group, members, partitions }) {
  const all = [];
  const add = (is, words, to) => all.push({ is, words, to });
  if (!group.has('ended')) {
    // what is said of a partition below need not be said twice
    const names = partitions.filter(of => of.it.get('state')).map(of => `${of.topic}-${of.number}`);
    const again = why => names.some(name => why.split(name).slice(1).some(rest => !/^\d/.test(rest)));
    for (const why of group.get('why')) if (!again(why)) add('bad', why, '#errors');
    for (const { id, member } of members) {
      const session = member.get('session');
      const state = session?.get('state');
      if (state === 'connected' && session.get('lease') < session.get('timeout') / 3) {
        add('bad', `${id} is about to lose its session: no heartbeat was answered lately, ${(session.get('lease') / 1000).toFixed(1)} s of its lease left`, '#members');
      } else if (session && state !== 'connected') {
        const left = session.get('lease') - (now() - group.get('at'));
        add('bad', `${id} is about to lose its session: ${state}, ${left > 0 ? `${span(left)} of its lease left` : 'its lease is over'}`, '#members');
      }
      if (member.get('error')) add('warn', `${id}: ${member.get('error')}`, '#members');
    }
    for (const unread of group.get('unread')) add('warn', `The group could not be read as a whole: ${unread}`);
    if (group.get('at') - group.get('read') > 45000) add('warn', `What others own is from ${clock(group.get('read'))}: the group cannot be read from ZooKeeper`);
    for (const state of Object.keys(SAYS)) {
      const its = partitions.filter(of => of.it.get('state') === state);
      const bad = state !== 'paused' && state !== 'waiting';
      if (its.length > 5) add(bad ? 'bad' : 'warn', `${count(its.length)} partitions are ${state}`, linkTo(its[0]));
      else for (const of of its) add(bad ? 'bad' : 'warn', describe(of, state), linkTo(of));
    }
  }
  byId('attention').parentElement.classList.toggle('calm', all.length === 0);
  if (all.length === 0) {
    const words = group.has('ended') ? 'Nothing runs any more.' : 'Nothing: all partitions flow, no handler is stuck, and every session here is well.';
    all.push({ is: 'good', words });
  }
  keep(byId('attention'), all, it => it.is + it.words.replace(/\d+ (s|min).*/, ''), it => el('li', { 'data-is': it.is }, it.to ? el('a', { href: it.to }) : el('span')), (child, it) => {
    text(child.firstElementChild, it.words);
    if (it.to) child.firstElementChild.setAttribute('href', it.to);
  });
}

/** What is the matter with a partition, the worst first. */
const SAYS = {
  stuck: name => `The handler of ${name} is stuck`, failed: name => `${name} has failed and stands`, unreadable: name => `${name} cannot be read on`,
  unowned: name => `${name} is owned by nobody`, waiting: name => `${name} waits to be fetched`, paused: name => `${name} is paused`,
};

function describe({ topic, number, it }, state) {
  const at = it.get('stands_at') === undefined ? '' : ` at offset ${it.get('stands_at')}`;
  const since = it.get('stands_since') === undefined ? '' : ` for ${span(now() - it.get('stands_since'))}`;
  const why = it.get('why') ? `: ${it.get('why')}` : '';
  return `${SAYS[state](`${topic} ${number}`)}${at}${since}${why}`;
}

/** Health in more words. */
const HEALTH = {
  healthy: 'all that falls to it flows', rebalancing: 'partitions come or go', suspended: 'the ZooKeeper session is not sure', leaving: 'shuts down', ended: 'shut down',
};

function startTheme() {
  const root = document.documentElement;
  const order = ['auto', 'light', 'dark'];
  const use = theme => {
    if (theme === 'auto') delete root.dataset.theme;
    else root.dataset.theme = theme;
    text(byId('theme'), `Theme: ${theme}`);
    drawAgain();
  };
  let theme = 'auto';
  try {
    theme = localStorage.getItem('troupe-theme') ?? 'auto';
  } catch { /* storage may be forbidden */ }
  use(order.includes(theme) ? theme : 'auto');
  byId('theme').addEventListener('click', () => {
    theme = order[(order.indexOf(theme) + 1) % order.length];
    use(theme);
    try {
      localStorage.setItem('troupe-theme', theme);
    } catch { /* it lasts as long as the page */ }
  });
}

const drawAgain = () => groups.size > 0 && draw();

/** `#partition=orders%2F7` selects it. */
function goTo() {
  const [, name, value] = location.hash.match(/^#(\w+)=(.*)$/) ?? [];
  if (name !== 'partition') return;
  const [, topic, number] = decodeURIComponent(value).match(/^(.*)\/(\d+)$/s) ?? [];
  if (topic !== undefined) select(topic, Number(number));
}

startTheme();
startPartitions();
startPlots();
startLists(() => draw());
byId('group').addEventListener('change', event => {
  shown = event.target.value;
  draw();
});
addEventListener('hashchange', goTo);
let first = true;
follow(() => {
  draw();
  if (first && groups.size) {
    first = false;
    goTo();
  }
});
// times go on between samples
setInterval(() => draw(false), 1000);
