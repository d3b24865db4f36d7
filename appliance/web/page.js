// The status page: takes a status a second by server-sent events and shows it. Names come from peers, so all of them go
// into the page as text (textContent), never as markup.
"use strict";

const byId = (id) => document.getElementById(id);
const set = (element, text) => { if (element.textContent !== text) element.textContent = text; };
const attribute = (element, name, value) => { if (element.getAttribute(name) !== value) element.setAttribute(name, value); };
const SIGNS = { ok: "●", ready: "◐", wait: "◌", bad: "▲", idle: "○" };
const STATES = { "": "idle", ok: "ok", up: "ok", opening: "wait", active: "ok", standby: "ready", degraded: "wait",
  normal: "ok", acknowledged: "wait", cleared: "idle" };
const stateOf = (word) => STATES[word] ?? (/not ready|settling|opening|warning|passive/.test(word) ? "wait" : "bad");

// ---- times: as the log of the gateway has them, in its zone. `zone_s` is its offset from UTC.
let zone_s = 0;
function stamp(ms) {
  const minutes = Math.abs(zone_s) / 60, two = (n) => String(Math.floor(n)).padStart(2, "0");
  return `${new Date(ms + zone_s * 1000).toISOString().slice(0, 19)}${zone_s < 0 ? "-" : "+"}${two(minutes / 60)}${two(minutes % 60)}`;
}

// ---- tables: rows of cells, of which only those change that differ
const marked = (word) => ({ text: word ? `${SIGNS[stateOf(word)]} ${word}` : "", state: stateOf(word) });
const COLUMNS = {
  roles: (r) => [r.bridge, marked(r.role), r.holder, r.epoch, r.takeovers, r.cause],
  alarms: (r) => [marked(r.stage), r.alarm, r.of, { text: r.text || r.cause, note: r.text ? r.cause : "" },
    r.since_ms === null ? "" : age(r.since_ms), r.by, r.told, { text: "", act: r.stage === "raised" ? r : null }],
  reasons: (r) => [marked(r.word), r.source, r.text],
  silent: (r) => [r[0], r[1]],
  rows: (r) => [r.hub, { text: r.link, note: r.fault }, marked(r.state), r.peers, r.in, r.out, r.queued, r.dropped, r.filtered],
  drops: (r) => [r.link, r.filtered ? `filtered (${r.how})` : r.how, r.reason, r.count],
  values: (r) => [r.pattern, r.unit ? `${r.data} ${r.unit}` : r.data, r.on, age(r.age_ms)],
  taps: (r) => [r.name, { ...marked(r.state), note: r.fault }, r.fill, r.captured, r.lost, r.written, r.files],
  services: (r) => [r.name, r.at, r.counts, r.refused],
  events: (r) => [{ text: r.time, time: true }, r.kind, r.source, r.cause],
};
const LISTS = Object.fromEntries([...document.querySelectorAll("table[data-list]")].map((table) => [table.dataset.list, {
  body: table.tBodies[0], section: table.closest("section"), hides: table.closest("section").hidden,
  heads: [...table.tHead.rows[0].cells].map((cell) => ({ label: cell.textContent.trim(), number: cell.className === "n" })),
}]));

function fill(name, items) {
  const { body, section, hides, heads } = LISTS[name];
  if (hides) section.hidden = !items.length;
  while (body.rows.length > items.length) body.deleteRow(-1);
  items.forEach((item, place) => {
    const row = body.rows[place] ?? addRow(body, heads);
    COLUMNS[name](item).forEach((value, column) => write(row.cells[column], value));
  });
}

function addRow(body, heads) {
  const row = body.insertRow();
  for (const head of heads) {
    const cell = row.insertCell();
    cell.dataset.label = head.label;
    if (head.number) cell.className = "n";
    cell.append(document.createElement("span"));
  }
  return row;
}

function write(cell, value) {
  const shown = typeof value === "object" ? value : { text: String(value) };
  set(cell.firstChild, shown.text);
  if (shown.state) { attribute(cell, "data-state", shown.state); attribute(cell, "class", "state"); }
  if (shown.time) attribute(cell, "class", "time");
  if ("act" in shown) button(cell, shown.act);
  if ("note" in shown) {
    if (!cell.firstChild.nextSibling) cell.append(document.createElement("small"));
    set(cell.lastChild, shown.note);
  }
}

// ---- alarms: who acknowledges shows a token of their own, which is kept no longer than the page
function button(cell, row) {
  let one = cell.querySelector("button");
  if (!one) {
    one = document.createElement("button");
    one.type = "button";
    set(one, "Acknowledge");
    one.addEventListener("click", () => acknowledge(one.dataset.alarm, one.dataset.of));
    cell.append(one);
  }
  one.hidden = !row;
  if (!row) return;
  attribute(one, "data-alarm", row.alarm);
  attribute(one, "data-of", row.of);
  attribute(one, "aria-label", `Acknowledge ${row.alarm} of ${row.of}`);
}

async function acknowledge(alarm, of) {
  const token = byId("ack-token").value.trim();
  if (!token) { set(byId("ack-said"), "First write your token here."); byId("ack-token").focus(); return; }
  try {
    const answer = await fetch(`alarms/${encodeURIComponent(alarm)}/ack?of=${encodeURIComponent(of)}`,
      { method: "POST", headers: { Authorization: `Bearer ${token}` } });
    set(byId("ack-said"), answer.ok ? `${alarm} is acknowledged.` : `Not acknowledged: ${(await answer.text()).trim()}`);
  } catch { set(byId("ack-said"), "Not acknowledged: no connection."); }
}

function age(ms) { return ms < 1000 ? `${ms} ms` : ms < 120000 ? `${Math.round(ms / 1000)} s` : `${Math.round(ms / 60000)} min`; }

function uptime(ns) {
  const s = Math.floor(ns / 1e9), days = Math.floor(s / 86400);
  const two = (n) => String(n).padStart(2, "0");
  return `${days ? `${days}d ` : ""}${Math.floor(s / 3600) % 24}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
}

// ---- the picture: drawn by the gateway, marked here by the ids in it
const NARROW = matchMedia("(max-width: 700px)");
let drawn = null, things = new Map(), marks = new Map(), room = 0;

async function draw(which) {
  drawn = which;
  const narrow = NARROW.matches;
  let answer, text;
  try {
    answer = await fetch(narrow ? "topology.svg?narrow" : "topology.svg");
    text = await answer.text();
  } catch { drawn = null; return; }  // the connection was lost: the next status asks again
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
  if (narrow !== NARROW.matches) return;  // the window has changed, and another picture is on its way
  if (!answer.ok || parsed.querySelector("parsererror")) { drawn = null; return; }
  const picture = document.importNode(parsed.documentElement, true);
  room = Number(picture.dataset.live);
  byId("picture").replaceChildren(picture);
  things = new Map([...picture.querySelectorAll("[data-id]")].map((one) => [one.dataset.id, one]));
  for (const [id, mark] of marks) mark_(id, mark);
}

function mark_(id, mark) {
  const thing = things.get(id);
  if (!thing) return;
  for (const state of Object.keys(SIGNS)) thing.classList.toggle(state, state === mark.state);
  const title = thing.querySelector("title"), sign = thing.querySelector(".sign"), live = thing.querySelector(".live");
  if (title) set(title, `${id}: ${mark.text}`);
  if (sign) set(sign, mark.sign);
  if (live) set(live, mark.text.length > room && thing.matches(".node") ? `${mark.text.slice(0, room - 1)}…` : mark.text);
  thing.querySelectorAll(".line").forEach((line, place) => set(line, mark.ways[place] ? `${thing.dataset.arrows[place]} ${mark.ways[place]}` : ""));
}

NARROW.addEventListener("change", () => { if (drawn) draw(drawn); });

// ---- what a screen reader is told: roles and links that change, no more than once in three seconds
let before = null, waiting = [], telling = 0;

function tell(words) {
  waiting.push(words);
  if (telling) return;
  telling = setTimeout(() => {
    set(byId("told"), waiting.slice(0, 3).join(". ") + (waiting.length > 3 ? `. And ${waiting.length - 3} more` : ""));
    waiting = [];
    telling = 0;
  }, 3000);
}

function compare(status) {
  const now = new Map([["this gateway", status.health.word], ...status.roles.map((r) => [`bridge ${r.bridge}`, r.role]),
    ...status.rows.filter((r) => r.state).map((r) => [`link ${r.hub} | ${r.link}`, r.state])]);
  if (before) for (const [what, word] of now) if (before.has(what) && before.get(what) !== word) tell(`${what} is ${word}`);
  before = now;
}

// ---- one status
let latest = null, frame = 0;

function take(status) {
  for (const [id, mark] of Object.entries(status.marks)) marks.set(id, mark);
  latest = { ...status, marks: { ...(frame ? latest.marks : {}), ...status.marks } };
  if (!frame) frame = requestAnimationFrame(show);
}

function show() {
  frame = 0;
  const status = latest, began = performance.now();
  zone_s = status.zone_s;
  for (const key of ["in", "out", "plant_in", "plant_out", "queued", "dropped", "filtered", "memory"]) set(byId(`t-${key}`), status.totals[key]);
  set(byId("t-up"), uptime(status.time_ns - status.started_ns));
  set(byId("topology"), status.topology);
  set(byId("gateway"), status.gateway && `on ${status.gateway}`);
  set(byId("about"), `buscoupler ${status.product}, process ${status.pid}`);
  health(status);
  if (status.drawn !== drawn && status.drawn) draw(status.drawn);
  for (const [id, mark] of Object.entries(status.marks)) mark_(id, mark);
  for (const name of ["reasons", "alarms", "roles", "rows", "drops", "values", "taps", "services", "events"]) fill(name, status[name]);
  fill("silent", Object.entries(status.silent));
  set(byId("more-rows"), status.more_rows ? `and ${status.more_rows} quiet links more: see status.json` : "");
  set(byId("more-values"), status.more_values ? `and ${status.more_values} more patterns of devices` : "");
  compare(status);
  window.buscouplerFrameMs = performance.now() - began;
}

function health(status) {
  const { word, more } = status.health, where = status.gateway || status.topology;
  byId("health").hidden = !word;
  if (!word) return;
  attribute(byId("health"), "data-state", stateOf(word));
  set(byId("health-sign"), SIGNS[stateOf(word)]);
  set(byId("health-text"), word);
  set(byId("more-reasons"), more ? `and ${more} more` : "");
  document.title = `${word === "ok" ? "" : `${SIGNS[stateOf(word)]} ${word}: `}${where} – buscoupler`;
  attribute(byId("icon"), "href", word === "ok" ? "icon.svg" : `icon-${word}.svg`);
}

// ---- the connection
function connection(state, text) {
  attribute(byId("connection"), "data-state", state);
  set(byId("connection-sign"), SIGNS[state]);
  set(byId("connection-text"), text);
}

let heard = 0;
const source = new EventSource("events");
source.onmessage = (message) => { heard = Date.now(); connection("idle", "live"); take(JSON.parse(message.data)); };
source.onerror = () => connection("bad", "no connection: what is shown is old");
setInterval(() => { if (heard && Date.now() - heard > 5000) connection("bad", `old: ${age(Date.now() - heard)}`); }, 1000);

// ---- the theme: as the system says, or as chosen here
const THEMES = ["auto", "light", "dark"];
function theme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = name;
  set(byId("theme"), `Theme: ${name}`);
  attribute(byId("theme"), "aria-label", name === "auto" ? "Colours: as the system" : `Colours: ${name}`);
  try { localStorage.setItem("theme", name); } catch { /* a browser may forbid it */ }
}
let chosen = "auto";
try { chosen = localStorage.getItem("theme") ?? "auto"; } catch { /* likewise */ }
theme(THEMES.includes(chosen) ? chosen : "auto");
byId("theme").addEventListener("click", () => {
  const now = document.documentElement.dataset.theme ?? "auto";
  theme(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]);
});
