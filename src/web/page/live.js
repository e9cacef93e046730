// The picture of the groups, kept up to date by server-sent events.

import { joined } from './dom.js';

/** Groups by key, as nested Maps: names such as `__proto__` are then only names. */
export const groups = new Map();
/** Rows of time, lag, records and bytes a second, by group. */
export const samples = new Map();

/** `connecting`, `live`, `lost` (trying again) or `ended`; since when; when the server's clock was what. */
export const link = { is: 'connecting', since: Date.now(), skew: 0, heard: 0 };

const MOST_SAMPLES = 900;
/** A page that nobody sees lets go of its connection: browsers have few of them for each server. */
const UNSEEN = 30000;

/** When a page whose consumers have ended looks again. */
const ENDED = 10000;

let tell = () => {};
let events = null;
let unseen = 0;

/** Begins to listen; `changed()` is called after each event and change of the connection. */
export function follow(changed) {
  tell = changed;
  listen();
  document.addEventListener('visibilitychange', () => {
    clearTimeout(unseen);
    if (document.hidden) unseen = setTimeout(rest, UNSEEN);
    else if (!events) listen();
  });
}

function rest() {
  events?.close();
  events = null;
}

function listen() {
  const its = new EventSource('events');
  events = its;
  its.addEventListener('picture', event => {
    groups.clear();
    merge(groups, JSON.parse(event.data));
    heard();
    remember();
  });
  its.addEventListener('change', event => {
    const { patch, samples: rows } = JSON.parse(event.data);
    merge(groups, patch);
    for (const [key, row] of Object.entries(rows)) add(key, row);
    heard();
  });
  its.addEventListener('ended', () => {
    rest();
    become('ended');
    // another process may serve here soon
    setTimeout(() => !events && !document.hidden && listen(), ENDED);
  });
  its.addEventListener('closing', () => become('lost'));
  // the browser tries again by itself, but not when it was answered with an error
  its.addEventListener('error', () => {
    if (link.is !== 'ended') become('lost');
    if (its.readyState === EventSource.CLOSED) setTimeout(() => events === its && listen(), 2000);
  });
}

function heard() {
  const at = Math.max(...[...groups.values()].map(group => group.get('at')));
  if (Number.isFinite(at)) link.skew = Date.now() - at;
  link.heard = Date.now();
  const all = [...groups.values()];
  become(all.length && all.every(group => group.has('ended')) ? 'ended' : 'live');
}

function become(is) {
  if (link.is !== is) Object.assign(link, { is, since: Date.now() });
  tell();
}

/** The time on the server, whose times all others are. */
export const now = () => Date.now() - link.skew;

/** A merge patch (RFC 7396) onto Maps. */
export function merge(target, patch) {
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) target.delete(name);
    else if (typeof value === 'object' && !Array.isArray(value)) {
      if (!(target.get(name) instanceof Map)) target.set(name, new Map());
      merge(target.get(name), value);
    } else target.set(name, value);
  }
}

/** Fetches what was before this page; a row that came meanwhile is not added twice. */
async function remember() {
  for (const key of groups.keys()) {
    const before = await history({ group: key });
    if (!before) continue;
    samples.set(key, joined(before.totals, samples.get(key) ?? []));
  }
  tell();
}

function add(key, row) {
  const rows = samples.get(key) ?? [];
  if (rows.at(-1)?.[0] >= row[0]) return;
  rows.push(row);
  samples.set(key, rows.slice(-MOST_SAMPLES));
}

/** What the server remembers; nothing when it cannot be had. */
export async function history(query) {
  try {
    const answer = await fetch(`history?${new URLSearchParams(query)}`);
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}
