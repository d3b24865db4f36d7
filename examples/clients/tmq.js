// A client of TMQ on plain TCP: one pattern, IPv4, one packet a connection, as the reference of 2015 (docs/tmq.md).
//
//   node tmq.js sub 127.0.0.1 9942 TOKEN...         prints the first message
//   node tmq.js pub 127.0.0.1 9942 TOKEN... TEXT    sends TEXT to the first subscriber that the broker names
//
// `buscoupler tokens` prints the tokens of names.
"use strict";
const net = require("net");

const SUB = 0x02, ADD = 0x05, PUBLISH = 0x45, SUBSCRIBE = 0x46, PACKET_MAX = 4 + 4 * 255 + 2048;

function packet(type, tokens, data) {
  const head = Buffer.alloc(4 + 4 * tokens.length);
  head.writeUInt8(type, 0);
  head.writeUInt8(tokens.length, 1);
  head.writeUInt16BE(data.length, 2);
  tokens.forEach((token, at) => head.writeUInt32BE(token, 4 + 4 * at));
  return Buffer.concat([head, data]);
}

function say(host, port, bytes, then = () => {}) {
  const line = net.connect(port, host, () => {
    // Who dials a port of this machine at which nobody listens may get that port, and is its own peer.
    const isItself = line.localPort === line.remotePort && line.localAddress === line.remoteAddress;
    if (!isItself) return void line.end(bytes);
    line.resetAndDestroy(); // the port is free for who is to listen there
    fail(new Error("connect ECONNREFUSED " + host + ":" + port));
  });
  line.on("error", fail).on("close", then);
}

function fail(error) {
  console.error(String(error));
  process.exit(1);
}

// Call `then(type, data)` for the first packet of each connection, as soon as it is whole.
function hear(then) {
  return net.createServer((line) => {
    let come = Buffer.alloc(0);
    line.on("error", () => line.destroy()).on("data", (more) => {
      come = Buffer.concat([come, more]);
      const start = come.length < 4 ? Infinity : 4 + 4 * come[1];
      const end = start === Infinity ? Infinity : start + come.readUInt16BE(2);
      if (come.length < end && come.length < PACKET_MAX) return;
      line.end();
      line.removeAllListeners("data").resume();
      if (come.length >= end) then(come[0], come.subarray(start, end));
    });
  });
}

const [verb, host, port, ...words] = process.argv.slice(2);
const text = verb === "pub" ? words.pop() : "";
const tokens = words.map(Number);
const isNumber = (word, most) => /^(0x[0-9a-f]{1,10}|[0-9]{1,10})$/i.test(word) && Number(word) <= most;
const fits = tokens.length > 0 && tokens.length <= 255 && Buffer.byteLength(text) <= 2048;
const isLegal = fits && words.every((word) => isNumber(word, 0xffffffff));
if (!["pub", "sub"].includes(verb) || !isLegal || !isNumber(port, 65535) || Number(port) === 0) {
  console.error("usage: node tmq.js sub|pub HOST PORT TOKEN... [TEXT]; tokens are numbers: `buscoupler tokens NAME`");
  process.exit(2);
}
if (!net.isIPv4(host)) {
  console.error("not IPv4: " + host);
  process.exit(2);
}

let isDone = false; // a connection that came meanwhile is still heard
const listener = hear((type, data) => {
  if (isDone) return;
  if (verb === "sub" && type === SUB) {
    console.log(data.toString());
    process.exitCode = 0;
    isDone = true;
    listener.close();
  } else if (verb === "pub" && type === ADD && data.length >= 8) {
    const subscriber = Array.from(data.subarray(4, 8)).join(".");
    say(subscriber, data.readUInt16BE(2), packet(SUB, tokens, Buffer.from(text)));
    isDone = true;
    listener.close();
  }
});
listener.on("error", fail).listen(0, "0.0.0.0", () => {
  const here = Buffer.from([0, 2, 0, 0, 0, 0, 0, 0]); // 0.0.0.0: the broker takes the connection's address
  here.writeUInt16BE(listener.address().port, 2);
  say(host, Number(port), packet(verb === "pub" ? PUBLISH : SUBSCRIBE, tokens, here));
});
