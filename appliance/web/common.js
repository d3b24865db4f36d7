// What the page of a gateway and that of a plant share: times, tables, the picture and the theme. Names come from peers, so
// all of them go into a page as text (textContent), never as markup.
"use strict";

const byId = (id) => document.getElementById(id);
const set = (element, text) => { if (element.textContent !== text) element.textContent = text; };
const attribute = (element, name, value) => { if (element.getAttribute(name) !== value) element.setAttribute(name, value); };
const SIGNS = { ok: "●", ready: "◐", wait: "◌", bad: "▲", idle: "○" };
const STATES = { "": "idle", ok: "ok", up: "ok", degraded: "wait", normal: "ok", acknowledged: "wait", cleared: "idle" };
const stateOf = (word) => STATES[word] ?? "bad";  // of links and roles the gateway says it

// ---- the verdict: its word and first reason in the head and the title, its word in the icon. That of the `plant` of a gateway
// stands before it, if it is worse.
const RANK = { degraded: 1, trouble: 2 };
const reasonOf = (word, line) => word === "ok" || line === word ? "" : line.replace(`${word}: `, "");
function verdict(word, line, where, kind, plant = {}) {
  const own = reasonOf(word, line), isWorse = (RANK[plant.word] ?? 0) > (RANK[word] ?? 0), worst = isWorse ? plant.word : word;
  const first = isWorse ? `plant: ${reasonOf(plant.word, plant.line)}` : `${where}${own && ": "}${own}`;
  const why = isWorse ? [first, own].filter(Boolean).join(" · ") : own;
  attribute(byId("health"), "data-state", stateOf(word));
  attribute(byId("why"), "data-state", stateOf(worst));
  byId("health").hidden = !word;
  set(byId("health-sign"), SIGNS[stateOf(word)]);
  set(byId("health-text"), word);
  set(byId("why"), why);
  attribute(byId("why"), "title", why);
  document.title = `${worst === "ok" || !worst ? "" : `${SIGNS[stateOf(worst)]} ${worst}: `}${first} – ${isWorse ? `${where}, ${kind}` : kind}`;
  attribute(byId("icon"), "href", worst in RANK ? `icon-${worst}.svg` : "icon.svg");
}

// ---- times: as the log of the gateway has them, in its zone. `zone_s` is its offset from UTC.
let zone_s = 0;
function stamp(ms) {
  const minutes = Math.abs(zone_s) / 60, two = (n) => String(Math.floor(n)).padStart(2, "0");
  return `${new Date(ms + zone_s * 1000).toISOString().slice(0, 19)}${zone_s < 0 ? "-" : "+"}${two(minutes / 60)}${two(minutes % 60)}`;
}

// ---- tables: rows of cells, of which only those change that differ
const marked = (word, state = stateOf(word)) => ({ text: word ? `${SIGNS[state]} ${word}` : "", state });
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
  if ("act" in shown) button(cell, shown.act);  // of the page that has such cells
  if ("note" in shown) {
    if (!cell.firstChild.nextSibling) cell.append(document.createElement("small"));
    set(cell.lastChild, shown.note);
  }
}

function age(ms) { return ms < 1000 ? `${ms} ms` : ms < 120000 ? `${Math.round(ms / 1000)} s`
  : ms < 7200000 ? `${Math.round(ms / 60000)} min` : ms < 172800000 ? `${Math.round(ms / 3600000)} h` : `${Math.round(ms / 86400000)} days`; }

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
  if (sign) set(sign, mark.sign ?? SIGNS[mark.state]);
  if (live) set(live, thing.matches(".node") ? (mark.text.length > room ? `${mark.text.slice(0, room - 1)}…` : mark.text)
    : ["bad", "wait"].includes(mark.state) ? `${SIGNS[mark.state]} ${mark.word}` : mark.word);  // all that the head of a gateway has room for
  thing.querySelectorAll(".line").forEach((line, place) => set(line, mark.ways[place] ? `${thing.dataset.arrows[place]} ${mark.ways[place]}` : ""));
}

NARROW.addEventListener("change", () => { if (drawn) draw(drawn); });

// ---- the connection
function connection(state, text) {
  attribute(byId("connection"), "data-state", state);
  set(byId("connection-sign"), SIGNS[state]);
  set(byId("connection-text"), text);
}

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
