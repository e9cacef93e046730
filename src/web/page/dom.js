// Elements, numbers and times. Text is only ever set as text: names come from others.

export const byId = id => document.getElementById(id);

/** An element with attributes (functions are listeners) and children (strings become text). */
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  set(element, attributes);
  element.append(...children.flat().filter(child => child !== null && child !== undefined));
  return element;
}

const SVG = 'http://www.w3.org/2000/svg';

export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  set(element, attributes);
  element.append(...children);
  return element;
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (name.startsWith('--')) element.style.setProperty(name, value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
}

/** Sets text only when it differs, so that nothing is selected, read out or laid out anew. */
export function text(element, value) {
  if (element.textContent !== value) element.textContent = value;
}

/**
 * Makes the children of `parent` those of `items`: by key they are kept (with their focus), made or removed.
 * `make(item)` gives an element; `update(element, item)` brings it up to date.
 */
export function keep(parent, items, key, make, update) {
  // a key may come twice
  const known = Map.groupBy([...parent.children], child => child.dataset.key);
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    let child = known.get(name)?.shift();
    if (!child) {
      child = make(item);
      child.dataset.key = name;
    }
    if (child === place) place = place.nextElementSibling;
    else put(parent, child, place);
    update?.(child, item);
  }
  for (const gone of [...known.values()].flat()) gone.remove();
}

/** An element that is moved would lose the focus that is in it. */
function put(parent, child, place) {
  const focused = document.activeElement;
  const had = child.contains(focused);
  parent.insertBefore(child, place);
  if (had) focused.focus({ preventScroll: true });
}

const WHOLE = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 });

const ROUGH = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 0 });

export const count = number => number === undefined ? '–' : WHOLE.format(number);
export const short = number => number === undefined ? '–' : Math.abs(number) < 10000 ? WHOLE.format(number) : SHORT.format(number);

/** In at most four characters, for small cells. */
export const tiny = number => number === undefined ? '–' : number < 1000 ? String(number) : number < 10000 ? SHORT.format(number) : ROUGH.format(number);

export function bytes(number) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  while (number >= 1000 && unit < units.length - 1) {
    number /= 1000;
    unit += 1;
  }
  return `${number < 10 && unit > 0 ? number.toFixed(1) : Math.round(number)} ${units[unit]}`;
}

const TIME = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const DAY = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });

/** `10:42:03`, with the day when it was another. */
export function clock(at) {
  const date = new Date(at);
  const today = new Date().toDateString() === date.toDateString();
  return today ? TIME.format(date) : `${DAY.format(date)} ${TIME.format(date)}`;
}

/** `4 s`, `12 min`, `3 h 20 min`, `2 d 4 h`. */
export function span(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return seconds % 60 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`;
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return hours % 24 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : `${hours / 24} d`;
}

/** In words: whether a lag grows, from its records each second. */
export function trend(each) {
  if (each === undefined) return { is: 'unknown', sign: '', words: '' };
  if (each >= 0.5) return { is: 'growing', sign: '▲', words: `growing ${short(each)}/s` };
  if (each <= -0.5) return { is: 'falling', sign: '▼', words: `falling ${short(-each)}/s` };
  return { is: 'steady', sign: '', words: 'steady' };
}

/** Where a partition is picked on the page. */
export const linkTo = ({ topic, number }) => `#partition=${encodeURIComponent(`${topic}/${number}`)}`;

/** Of a rebalance: `consumers changed, partitions changed`. */
export const reasons = it => it.get('reasons').join(', ').replaceAll('_', ' ');

/** Rows of before, and those that came after them meanwhile: both begin with their time. */
export function joined(before, rows) {
  const last = before.at(-1)?.[0] ?? 0;
  return [...before, ...rows.filter(row => row[0] > last)];
}

/** The letter of a member by its mark: A to Z, then AA and so on. */
export function letter(mark) {
  if (mark === undefined) return '?';
  const last = String.fromCharCode(65 + mark % 26);
  return mark < 26 ? last : letter(Math.floor(mark / 26) - 1) + last;
}

/** What a mark looks like: a hue (neighbours far apart) and a pattern. */
export const look = mark => mark === undefined ? { class: 'nobody' } : { class: `own p${mark % 6}`, '--hue': Math.round(mark * 137.5 + 200) % 360 };

/** A member's letter in its colours. */
export function chip(mark, name) {
  return el('span', { ...look(mark), class: `chip ${look(mark).class}`, title: name }, el('b', {}, letter(mark)));
}
