// The status page: takes a status a second by server-sent events and shows it. It needs common.js.
"use strict";

// ---- tables: the cells of each row
const COLUMNS = {
  roles: (r) => [r.bridge, marked(r.role, r.sign), r.holder, r.epoch, r.takeovers, r.cause],
  alarms: (r) => [marked(r.stage), r.alarm, r.of, { text: r.text || r.cause, note: r.text ? r.cause : "" },
    r.since_ms === null ? "" : age(r.since_ms), r.by, r.told, { text: "", act: r.stage === "raised" ? r : null }],
  reasons: (r) => [marked(r.word), r.source, r.text],
  silent: (r) => [r[0], r[1]],
  rows: (r) => [r.hub, { text: r.link, note: r.fault }, marked(r.state, r.sign), r.peers, r.in, r.out, r.queued, r.dropped, r.filtered],
  drops: (r) => [r.link, r.filtered ? `filtered (${r.how})` : r.how, r.reason, r.count],
  values: (r) => [r.pattern, r.unit ? `${r.data} ${r.unit}` : r.data, r.on, age(r.age_ms)],
  taps: (r) => [r.name, { ...marked(r.state), note: r.fault }, r.fill, r.captured, r.lost, r.written, r.files],
  services: (r) => [r.name, r.at, r.counts, r.refused],
  events: (r) => [{ text: r.time, time: true }, r.kind, r.source, r.cause],
};

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
  const { word = "", line = "", more } = status.health;
  if (word) verdict(word, line, status.gateway || status.topology, "buscoupler", status.plant);
  set(byId("more-reasons"), more ? `and ${more} more` : "");
  byId("plant").hidden = !status.plant.word;
  if (status.plant.word) { attribute(byId("plant"), "data-state", stateOf(status.plant.word)); set(byId("plant"), `Plant: ${SIGNS[stateOf(status.plant.word)]} ${status.plant.word}`); attribute(byId("plant"), "title", status.plant.line); }
  if (status.drawn !== drawn && status.drawn) draw(status.drawn);
  for (const [id, mark] of Object.entries(status.marks)) mark_(id, mark);
  for (const name of ["reasons", "alarms", "roles", "rows", "drops", "values", "taps", "services", "events"]) fill(name, status[name]);
  fill("silent", Object.entries(status.silent));
  set(byId("more-rows"), status.more_rows ? `and ${status.more_rows} quiet links more: see status.json` : "");
  for (const name of ["alarms", "silent", "drops"]) set(byId(`more-${name}`), status[`more_${name}`] ? `and ${status[`more_${name}`]} more: see status.json` : "");
  set(byId("more-values"), status.more_values ? `and ${status.more_values} more patterns of devices` : "");
  compare(status);
  window.buscouplerFrameMs = performance.now() - began;
}

// ---- the events of the gateway
const AGAIN_MS = 2000;
let heard = 0, source = null;

function listen() {
  source = new EventSource("events");
  source.onmessage = (message) => { heard = Date.now(); take(JSON.parse(message.data)); connection("idle", "live"); };
  source.onerror = () => {
    connection("bad", "no connection: what is shown is old");
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, AGAIN_MS);  // after an answer other than 200 browsers give up
  };
}

listen();
setInterval(() => { if (heard && Date.now() - heard > 5000) connection("bad", `old: ${age(Date.now() - heard)}`); }, 1000);
