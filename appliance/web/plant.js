// The page of a whole plant: asks this gateway for what it knows of all gateways, every two seconds.
"use strict";

const MANY = 24;  // gateways; of more, those that are well have small cards behind the others
const PLACES = { answers: "", claims: "wait", silent: "bad", unknown: "idle" };
const COLUMNS = {
  reasons: (r) => [marked(r.word), r.source, r.text],
  roles: (r) => [r.bridge, r.active.join(", "), r.standby.join(", "), r.off.join(", ")],
};

function stateOfGateway(row) {
  const state = PLACES[row.state] || stateOf(row.word);
  return state === "ok" && row.other_file ? "wait" : state;
}

function wordOfGateway(row) {
  if (row.state === "answers" && row.other_file && row.word === "ok") return "another file";
  return row.state === "answers" ? row.word || "answers" : { claims: "lives", silent: "silent", unknown: "not heard" }[row.state];
}

// ---- a card for each gateway
function cards(rows) {
  const many = rows.length > MANY;
  document.body.classList.toggle("many", many);
  if (!many) return rows.map(card);
  const calm = (row) => stateOfGateway(row) === "ok" && Math.abs(row.ahead_ms) <= 2000;
  return [...rows.filter((row) => !calm(row)).map(card), ...rows.filter(calm).map(smallCard)];
}

function smallCard(row) {
  const item = document.createElement("li"), name = row.page && !row.here ? pageOf(row, row.name) : piece("span", row.name);
  item.dataset.state = stateOfGateway(row);
  item.className = "small";
  item.title = [row.address, ...facts(row).map(([key, text]) => `${key} ${text}`)].join("\n");
  item.append(piece("span", `${SIGNS[item.dataset.state]} `), name, piece("span", ` ${wordOfGateway(row)}`));
  item.firstChild.className = item.lastChild.className = "word";
  return item;
}

function card(row) {
  const item = document.createElement("li"), head = document.createElement("h3"), word = document.createElement("p");
  const line = document.createElement("p"), list = document.createElement("dl");
  item.dataset.state = stateOfGateway(row);
  head.textContent = row.name;
  head.append(piece("small", row.here ? `${row.address}, this gateway` : row.address));
  word.className = "word";
  word.textContent = `${SIGNS[item.dataset.state]} ${wordOfGateway(row)}`;
  line.textContent = row.word ? row.line.replace(`${row.word}: `, "") : row.line;
  item.append(head, word);
  if (line.textContent && row.line !== row.word) item.append(line);
  for (const [name, text, bad] of facts(row)) {
    const value = piece("dd", text);
    if (bad) value.className = "differs";
    list.append(piece("dt", name), value);
  }
  item.append(list);
  if (row.page && !row.here) item.append(pageOf(row));
  return item;
}

function piece(kind, text) {
  const made = document.createElement(kind);
  made.textContent = text;
  return made;
}

function pageOf(row, text = "Its page") {
  const link = piece("a", text);
  if (/^https?:\/\//.test(row.page)) link.href = row.page;
  return link;
}

function facts(row) {
  if (row.state !== "answers") return [];
  const clock = Math.abs(row.ahead_ms) < 1000 ? "agrees" : `${row.ahead_ms > 0 ? "+" : "−"}${age(Math.abs(row.ahead_ms))}`;
  return [
    ["Version", row.product, false],
    ["File", (row.file || "–").slice(0, 8) + (row.other_file ? ", differs" : ""), row.other_file],
    ["Clock", row.here ? stamp(row.time_ns / 1e6) : clock, Math.abs(row.ahead_ms) > 2000],
    ["Up", uptime(row.time_ns - row.started_ns), false],
  ];
}

function failover(rows) {
  const found = new Map();
  for (const row of rows) for (const role of row.roles ?? []) {
    const one = found.get(role.bridge) ?? { bridge: role.bridge, active: [], standby: [], off: [] };
    found.set(role.bridge, one);
    (!role.ready ? one.off : ["active", "orphan", "parallel"].includes(role.role) ? one.active : one.standby).push(row.name);
  }
  return [...found.values()];
}

// ---- one answer
let shown = "", before = null, heard = 0;

function take(plant) {
  zone_s = plant.zone_s;
  set(byId("topology"), plant.topology);
  set(byId("about"), `as ${plant.gateway} sees it, buscoupler ${plant.product}`);
  verdict(plant.word, plant.line, plant.topology, "plant");
  if (before !== null && before !== plant.word) set(byId("told"), `the plant is ${plant.word}`);
  before = plant.word;
  const rows = JSON.stringify(plant.gateways);
  if (rows !== shown) byId("gateways").replaceChildren(...cards(plant.gateways));
  shown = rows;
  set(byId("more-gateways"), plant.more_gateways ? `and ${plant.more_gateways} more` : "");
  fill("reasons", plant.reasons);
  set(byId("more-reasons"), plant.more ? `and ${plant.more} more` : "");
  fill("roles", failover(plant.gateways));
  if (plant.drawn && plant.drawn !== drawn) draw(plant.drawn);
  for (const id of marks.keys()) marks.set(id, { state: "idle", word: "", text: "", lines: [], ways: [] });  // those of one that has gone
  for (const [id, mark] of Object.entries(plant.marks)) marks.set(id, mark);
  for (const row of plant.gateways) marks.set(`gateway ${row.name}`, { state: stateOfGateway(row), word: wordOfGateway(row), text: row.line, lines: [], ways: [] });
  for (const [id, mark] of marks) mark_(id, mark);
}

async function ask() {
  try {
    const answer = await fetch("plant.json");
    if (!answer.ok) throw new Error(answer.statusText);
    take(await answer.json());
    heard = Date.now();
    connection("idle", "live");
  } catch { connection("bad", heard ? `old: ${age(Date.now() - heard)}` : "no connection"); }
  setTimeout(ask, 2000);
}

ask();
