// The map of partitions, coloured by owner or lag, and what is known of the one that is selected.

import { byId, chip, clock, count, el, joined, keep, letter, linkTo, look, short, span, text, tiny, trend } from './dom.js';
import { history, now } from './live.js';
import { Plot } from './plots.js';

/** `{topic, number}`, and the rows of time and lag that are plotted. */
let selected = null;
let rows = [];
let view = null;
/** The member whose partitions stand out. */
let lit = null;
const plot = new Plot({ name: 'Lag of the partition', short: true });

/** Ten minutes, as the server remembers of a partition. */
const MOST_ROWS = 300;

const same = (a, b) => a && b && a.topic === b.topic && a.number === b.number;
const find = of => view?.partitions.find(other => same(other, of));
const colour = () => document.querySelector('input[name=colour]:checked').value;

export function startPartitions() {
  byId('find-form').addEventListener('submit', event => {
    event.preventDefault();
    search(byId('find').value);
  });
  byId('colour').addEventListener('change', () => drawPartitions(view));
  byId('map').addEventListener('keydown', move);
  byId('map').addEventListener('click', event => {
    const cell = event.target.closest('[role=option]');
    if (cell) select(cell.topic, cell.number, false);
  });
}

/** Of `7`, `orders 7`, `orders/7` or `orders-7`, and goes there. */
function search(words) {
  const [, name, number] = words.trim().match(/^(.*?)[\s/-]*(\d+)$/s) ?? [];
  if (number === undefined) return say(`Which partition? Type its number, such as 7, or topic and number.`);
  const of = it => it.number === Number(number);
  const found = view?.partitions.find(it => of(it) && it.topic === (name || selected?.topic))
    ?? view?.partitions.find(it => of(it) && (!name || it.topic.includes(name)));
  if (!found) return say(`There is no partition ${words}`);
  select(found.topic, found.number);
}

const say = words => text(byId('said'), words);

/** Shows what is known of a partition; its cell becomes the one that Tab reaches, and takes the focus. */
export function select(topic, number, focus = true) {
  if (!find({ topic, number })) return;
  if (!same(selected, { topic, number })) {
    selected = { topic, number };
    rows = [];
    loadLag(selected);
  }
  globalThis.history.replaceState(null, '', linkTo({ topic, number }));
  drawPartitions(view);
  const cell = document.querySelector('#map [aria-selected=true]');
  if (focus) cell?.focus();
  const { it } = find(selected);
  const since = it.get('since') === undefined ? '' : `, since ${clock(it.get('since'))}`;
  say(`${topic} ${number}: ${it.get('member') ? `owned by ${it.get('member')}` : 'not owned'}${since}, lag ${count(it.get('lag'))}`);
}

async function loadLag(of) {
  const before = await history({ group: view.key, topic: of.topic, partition: of.number });
  if (!same(selected, of)) return;
  rows = joined(before?.lag ?? [], rows);
  drawDetail();
}

/** Arrows, Home, End, Page Up and Page Down go from cell to cell, as they lie. */
function move(event) {
  const cell = event.target.closest('[role=option]');
  if (!cell) return;
  const cells = [...byId('map').querySelectorAll('[role=option]')];
  const at = cells.indexOf(cell);
  const below = down => {
    const { left, top } = cell.getBoundingClientRect();
    const there = cells.map((other, index) => ({ index, box: other.getBoundingClientRect() }))
      .filter(({ box }) => (down ? box.top > top + 2 : box.top < top - 2));
    const near = there.reduce((best, { box }) => (down ? Math.min(best, box.top) : Math.max(best, box.top)), down ? Infinity : -Infinity);
    const row = there.filter(({ box }) => Math.abs(box.top - near) < 2);
    return row.sort((a, b) => Math.abs(a.box.left - left) - Math.abs(b.box.left - left))[0]?.index;
  };
  const to = {
    ArrowRight: () => at + 1, ArrowLeft: () => at - 1, ArrowDown: () => below(true), ArrowUp: () => below(false),
    Home: () => 0, End: () => cells.length - 1, PageDown: () => Math.min(at + 50, cells.length - 1), PageUp: () => Math.max(at - 50, 0),
    Enter: () => at, ' ': () => at,
  }[event.key];
  if (!to) return;
  event.preventDefault();
  const next = cells[to()];
  if (next) select(next.topic, next.number);
}

export function drawPartitions(now) {
  if (!now) return;
  if (view?.key !== now.key) [selected, rows, lit] = [null, [], null];
  view = now;
  if (selected && !find(selected)) selected = null;
  drawLegend();
  drawMap();
  drawDetail();
}

function drawLegend() {
  const owned = new Map();
  for (const { it } of view.partitions) owned.set(it.get('member'), (owned.get(it.get('member')) ?? 0) + 1);
  const toggle = event => {
    const id = event.currentTarget.member;
    lit = lit === id ? null : id;
    drawPartitions(view);
  };
  const make = of => {
    const button = el('button', { type: 'button', class: 'owner', click: toggle }, chip(of.mark, of.id), el('span', { class: 'name' }, of.id), el('span', { class: 'quiet' }));
    button.member = of.id;
    return el('li', {}, button);
  };
  keep(byId('legend'), view.members, of => `${of.mark} ${of.id}`, make, (child, of) => {
    child.firstElementChild.setAttribute('aria-pressed', lit === of.id);
    child.firstElementChild.title = `Show only what ${of.id} owns`;
    text(child.firstElementChild.lastElementChild, count(owned.get(of.id) ?? 0));
  });
}

function drawMap() {
  const topics = Map.groupBy(view.partitions, of => of.topic);
  const make = ([topic]) => el('div', { class: 'topic' },
    el('h3', {}, el('span', {}, topic), ' ', el('span', { class: 'quiet' })),
    el('div', { role: 'listbox', class: 'cells', 'aria-label': `Partitions of ${topic}`, 'aria-orientation': 'horizontal' }));
  const worst = Math.max(1, ...view.partitions.map(of => of.it.get('lag') ?? 0));
  const tabbed = selected ?? view.partitions[0];
  keep(byId('map'), [...topics], ([topic]) => topic, make, (child, [, all]) => {
    const [title, cells] = child.children;
    text(title.lastElementChild, `${count(all.length)} partition${all.length === 1 ? '' : 's'}`);
    cells.classList.toggle('small', all.length > 48);
    keep(cells, all, of => of.number, makeCell, (cell, of) => drawCell(cell, of, worst, tabbed));
  });
  let none = byId('map').querySelector('.none');
  if (view.partitions.length) none?.remove();
  else if (!none) byId('map').append(el('p', { class: 'none quiet' }, 'No partitions: nobody subscribes to a topic that exists.'));
}

function makeCell({ topic, number }) {
  const cell = el('div', { role: 'option', class: 'cell' }, el('b', {}), el('i', {}, String(number)));
  return Object.assign(cell, { topic, number });
}

function drawCell(cell, of, worst, tabbed) {
  const { topic, number, it } = of;
  const member = it.get('member');
  const mark = view.marks.get(member);
  const state = it.get('state') ?? '';
  const byLag = colour() === 'lag';
  const lag = it.get('lag');
  const heat = lag ? Math.ceil(8 * Math.sqrt(lag / worst)) : 0;
  const picked = same(selected, of);
  const faint = lit !== null && lit !== member;
  const like = [member, mark, state, byLag && heat, byLag && lag, picked, same(tabbed, of), faint].join('|');
  if (cell.like === like) return;
  cell.like = like;
  const its = byLag ? { class: 'heat', '--heat': heat } : look(mark);
  cell.className = ['cell', its.class, state && `is-${state}`, faint && 'faint'].filter(Boolean).join(' ');
  cell.style.setProperty('--hue', its['--hue'] ?? 0);
  cell.style.setProperty('--heat', its['--heat'] ?? 0);
  cell.setAttribute('aria-selected', picked);
  cell.tabIndex = same(tabbed, of) ? 0 : -1;
  text(cell.firstElementChild, byLag ? tiny(lag) : member ? letter(mark) : '–');
  const words = `${topic} ${number}, ${member ? `owned by ${letter(mark)} ${member}` : 'not owned'}${state && state !== 'unowned' ? `, ${state}` : ''}`;
  cell.setAttribute('aria-label', words);
  cell.title = words;
}

export function drawDetail() {
  const panel = byId('detail');
  const of = selected && find(selected);
  if (!of) {
    if (panel.dataset.of !== '') panel.replaceChildren(el('h3', { id: 'detail-title' }, 'No partition selected'), el('p', { class: 'quiet' }, 'Pick one in the map, or find it by its number: who owns it, since when, and how far it is.'));
    panel.dataset.of = '';
    return;
  }
  const { topic, number, it } = of;
  const name = JSON.stringify([topic, number]);
  if (panel.dataset.of !== name) {
    panel.dataset.of = name;
    panel.replaceChildren(el('h3', { id: 'detail-title' }, `${topic} ${number}`), el('dl', {}), el('div', { class: 'plot small' }));
    plot.place(panel.lastElementChild);
  }
  const at = view.group.get('at');
  if (it.has('lag') && (rows.at(-1)?.[0] ?? 0) < at) rows = [...rows.slice(1 - MOST_ROWS), [at, it.get('lag')]];
  keep(panel.children[1], facts(it), ([title]) => title, ([title]) => el('div', {}, el('dt', {}, title), el('dd')), (row, [, value, is, mark]) => {
    const dd = row.lastElementChild;
    row.dataset.is = is ?? '';
    if (dd.like === value + mark) return;
    dd.like = value + mark;
    dd.replaceChildren(...[mark !== undefined && chip(mark, value), el('span', {}, value)].filter(Boolean));
  });
  plot.draw([{ rows, index: 1, name: 'lag' }], short);
}

function facts(it) {
  const member = it.get('member');
  const moves = trend(it.get('trend'));
  const lag = count(it.get('lag')) + (moves.words ? `, ${moves.words}` : '');
  const state = it.get('state');
  const all = [['Owner', member || 'nobody', member ? '' : 'bad', view.marks.get(member)]];
  const thread = it.get('thread');
  if (thread) all.push(['Thread', thread.startsWith(`${member}-`) ? thread.slice(member.length + 1) : thread]);
  if (it.has('since')) all.push(['Since', `${clock(it.get('since'))}, for ${span(now() - it.get('since'))}`]);
  all.push(['State', state || 'flows', state ? 'bad' : '']);
  if (it.has('stands_at')) all.push(['Stands', `at offset ${it.get('stands_at')}${it.has('stands_since') ? `, for ${span(now() - it.get('stands_since'))}` : ''}`, 'bad']);
  if (it.get('why')) all.push(['Why', it.get('why'), 'bad']);
  all.push(['Lag', lag, moves.is === 'growing' && it.get('lag') >= 100 ? 'warn' : '']);
  if (it.has('acked')) all.push(['Handled up to', count(it.get('acked'))]);
  all.push(['Committed', count(it.get('committed'))], ['Log end', count(it.get('end'))]);
  return all;
}
