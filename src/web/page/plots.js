// Plots over time, as SVG: one or more lines, axes, a cursor by pointer or arrow keys, marks of rebalances.

import { byId, clock, el, reasons, short, span, svg, text } from './dom.js';

const HEIGHT = 200;
const HEIGHT_SHORT = 120;
const LEFT = 48;
const BELOW = 22;
const ABOVE = 10;

/** Steps of a time axis, in milliseconds. */
const STEPS = [10, 15, 30, 60, 120, 300, 600, 900].map(seconds => seconds * 1000);
const MINUTES = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });

export class Plot {
  constructor({ name, short: isShort = false }) {
    this.name = name;
    this.height = isShort ? HEIGHT_SHORT : HEIGHT;
    this.lines = [];
    this.marks = [];
    this.cursor = null;
    this.root = svg('svg', { class: 'chart', tabindex: '0', role: 'img' });
    this.read = el('p', { class: 'read', 'aria-live': 'off' });
    this.root.addEventListener('pointermove', event => this.point(event.offsetX));
    this.root.addEventListener('pointerleave', () => this.show(null));
    this.root.addEventListener('blur', () => this.show(null));
    this.root.addEventListener('keydown', event => this.key(event));
    new ResizeObserver(() => this.paint()).observe(this.root);
  }

  /** Into an element, which is then its own. */
  place(parent) {
    parent.replaceChildren(this.root, this.read);
  }

  /** Lines `{rows, index, name}` of rows that begin with a time; `format` writes a value; `marks` are `{at, words}`. */
  draw(lines, format, marks = []) {
    Object.assign(this, { lines, format, marks });
    this.paint();
  }

  paint() {
    const width = this.root.clientWidth;
    const rows = this.lines[0]?.rows ?? [];
    if (!width || !this.format) return;
    this.root.setAttribute('viewBox', `0 0 ${width} ${this.height}`);
    this.root.setAttribute('height', this.height);
    if (rows.length < 2) {
      this.root.replaceChildren(svg('text', { x: width / 2, y: this.height / 2, 'text-anchor': 'middle', class: 'axis' }));
      text(this.root.firstChild, 'The first samples come in a few seconds');
      return this.label('no samples yet');
    }
    const [from, to] = [rows[0][0], rows.at(-1)[0]];
    const most = nice(Math.max(1, ...this.lines.flatMap(line => line.rows.map(row => row[line.index]))));
    this.x = at => LEFT + (at - from) / Math.max(1, to - from) * (width - LEFT - 8);
    this.y = value => ABOVE + (1 - value / most) * (this.height - ABOVE - BELOW);
    this.root.replaceChildren(...this.axes(most, from, to, width), ...this.ticks(), ...this.curves(), svg('g', { class: 'cursor' }));
    const last = this.lines[0].rows.at(-1)[this.lines[0].index];
    this.label(`now ${this.format(last)}, over ${span(to - from)} from ${this.format(rows[0][this.lines[0].index])}, at most ${this.format(Math.max(...rows.map(row => row[this.lines[0].index])))}`);
    this.show(this.cursor);
  }

  label(words) {
    this.root.setAttribute('aria-label', `${this.name}: ${words}. Arrow keys read it.`);
  }

  axes(most, from, to, width) {
    const all = [];
    for (const part of this.height > 150 ? [0, 0.25, 0.5, 0.75, 1] : [0, 0.5, 1]) {
      const y = Math.round(this.y(most * part)) + 0.5;
      const label = svg('text', { x: LEFT - 8, y: y + 4, 'text-anchor': 'end', class: 'axis' });
      text(label, this.format(most * part));
      all.push(svg('line', { x1: LEFT, x2: width - 8, y1: y, y2: y, class: part ? 'grid' : 'base' }), label);
    }
    const step = STEPS.find(it => (to - from) / it <= Math.max(2, width / 110)) ?? STEPS.at(-1);
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
      const x = this.x(at);
      if (x < LEFT + 14 || x > width - 24) continue;
      const label = svg('text', { x, y: this.height - 5, 'text-anchor': 'middle', class: 'axis' });
      text(label, step % 60000 ? clock(at) : MINUTES.format(at));
      all.push(svg('line', { x1: x, x2: x, y1: this.height - BELOW, y2: this.height - BELOW + 4, class: 'base' }), label);
    }
    return all;
  }

  /** Rebalances, as thin lines. */
  ticks() {
    const [from, to] = [this.lines[0].rows[0][0], this.lines[0].rows.at(-1)[0]];
    return this.marks.filter(mark => mark.at >= from && mark.at <= to).map(mark => {
      const x = this.x(mark.at);
      const title = svg('title');
      text(title, `${clock(mark.at)} ${mark.words}`);
      return svg('g', { class: 'mark' }, svg('line', { x1: x, x2: x, y1: ABOVE, y2: this.height - BELOW }), svg('path', { d: `M${x - 4} ${ABOVE - 6}h8l-4 7z` }), title);
    });
  }

  curves() {
    return this.lines.flatMap((line, number) => {
      const points = line.rows.map(row => `${this.x(row[0]).toFixed(1)} ${this.y(row[line.index]).toFixed(1)}`);
      const base = this.y(0);
      const area = `M${this.x(line.rows[0][0])} ${base}L${points.join('L')}L${this.x(line.rows.at(-1)[0])} ${base}Z`;
      const curve = svg('path', { d: `M${points.join('L')}`, class: `line n${number}` });
      return number ? [curve] : [svg('path', { d: area, class: 'area' }), curve];
    });
  }

  point(x) {
    const rows = this.lines[0]?.rows ?? [];
    if (rows.length < 2 || !this.x) return;
    const near = rows.reduce((best, row, index) => (Math.abs(this.x(row[0]) - x) < Math.abs(this.x(rows[best][0]) - x) ? index : best), 0);
    this.show(near);
  }

  key(event) {
    const last = (this.lines[0]?.rows.length ?? 0) - 1;
    const at = this.cursor ?? last;
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last, PageUp: at - 15, PageDown: at + 15 }[event.key];
    if (to === undefined || last < 1) return;
    event.preventDefault();
    this.read.setAttribute('aria-live', 'polite');
    this.show(Math.min(last, Math.max(0, to)));
  }

  /** The cursor at a row, and its values in words. */
  show(index) {
    const rows = this.lines[0]?.rows ?? [];
    this.cursor = index !== null && rows[index] ? index : null;
    const group = this.root.querySelector('.cursor');
    group?.replaceChildren();
    if (this.cursor === null || !group) return text(this.read, '');
    const row = rows[this.cursor];
    const x = this.x(row[0]);
    group.append(svg('line', { x1: x, x2: x, y1: ABOVE, y2: this.height - BELOW }));
    for (const line of this.lines) group.append(svg('circle', { cx: x, cy: this.y(row[line.index]), r: 3.5 }));
    text(this.read, `${clock(row[0])}  ${this.lines.map(line => `${line.name} ${this.format(row[line.index])}`).join(', ')}`);
  }
}

/** Four times a round number, so that quarters are round too. */
function nice(most) {
  const power = 10 ** Math.max(0, Math.floor(Math.log10(most / 4)));
  return 4 * power * ([1, 2, 3, 4, 5, 6, 8].find(step => 4 * step * power >= most) ?? 10);
}

const lag = new Plot({ name: 'Lag' });
const rate = new Plot({ name: 'Throughput' });

export function startPlots() {
  lag.place(byId('plot-lag'));
  rate.place(byId('plot-rate'));
}

export function drawPlots({ group, samples }) {
  const marks = [...group.get('rebalances').values()].map(it => ({ at: it.get('at'), words: `${it.get('member')}: ${reasons(it)}` }));
  lag.draw([{ rows: samples, index: 1, name: 'lag' }], short, marks);
  rate.draw([{ rows: samples, index: 2, name: 'records a second' }], short, marks);
  const covers = samples.length > 1 ? `the last ${span(samples.at(-1)[0] - samples[0][0])}; rebalances are marked` : '';
  text(byId('flow-span'), covers);
}
