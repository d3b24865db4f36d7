"""One list of topologies that cannot run. `check` and `run` are both held to it (test_check.py)."""

from typing import NamedTuple


class Bad(NamedTuple):
    """A topology with one error: its text, the line of the error, some of its words, and a gateway to run."""

    text: str
    line: int
    words: str
    gateway: str = "a"


TWO = "name: t\ngateways: {a: {address: 10.0.0.1, node: 1}, b: {address: 10.0.0.2, node: 2}}\n"
ONE = "name: t\ngateways: {a: {node: 1}}\n"
BUSES = "buses: {p: {on: a, listen: 'tcp://0.0.0.0:5'}, q: {on: b, listen: 'tcp://0.0.0.0:5'}}\n"
BROKER = "brokers: {m: {on: a, listen: 'tcp://0.0.0.0:9942'}}\n"


def bus(keys: str) -> str:
    return ONE + f"buses: {{p: {{on: a, {keys}}}}}\n"


def listen(url: str, keys: str = "") -> str:
    return bus(f"listen: {{url: '{url}'{keys}}}")


def side(medium: str, more: str = "") -> str:
    return (
        bus("listen: 'tcp://127.0.0.1:5'")
        + f"bridges: {{x: {{on: a, join: [bus: p, {{{medium}}}]{more}}}}}\n"
    )


def broker(keys: str, head: str = ONE) -> str:
    return head + f"brokers: {{m: {{on: a, {keys}}}}}\n"


TLS = ", tls: {cert_file: c.pem%s}"

BAD = {
    # what cannot be read
    "empty": Bad("", 1, "empty"),
    "no YAML": Bad("name: [", 1, ""),
    "unknown key": Bad(ONE + "busses: {}\n", 3, 'did you mean "buses"'),
    "wrong indentation": Bad(ONE + "buses:\n  p: x\n    on: a\n", 5, "indented wrong"),
    "a tab": Bad(ONE + "buses:\n\tp: {on: a}\n", 4, "indent with blanks, not with tabs"),
    "a brace that is missing": Bad(
        ONE + "buses: {p: {on: a}\nevents: p\n", 4, "is a brace or a comma missing"
    ),
    "a question without quotes": Bad(
        side("tcp: {host: h, port: 5025}, protocol: {queries: {queries: [{ask: VOLT?, pattern: v}]}}"),
        4,
        "text with a ? in brackets or braces needs quotes",
    ),
    "MQTT without its package": Bad(side("mqtt: 'mqtt://h:1883'"), 4, "package of its own"),
    "a protocol of others": Bad(side("opcua: /dev/x"), 4, "OPC UA are not translated"),
    "a protocol as a medium": Bad(side("modbus: /dev/x"), 4, "protocol: {modbus: ...}"),
    "a file by gateway": Bad(
        bus("listen: {url: 'tls+tcp://127.0.0.1:5', tls: {cert_file: {a: x}}}"),
        3,
        "one level up: tls: {a: {cert_file: ...}, ...}",
    ),
    "a key of an address beside it": Bad(
        bus("listen: 'tcp://127.0.0.1:5', last_values: true"),
        3,
        "write it in listen: listen: {last_values: ...}",
    ),
    "a key of the page beside it": Bad(
        "name: t\ngateways: {a: {token_file: x}}\n", 2, "write it in status: status: {token_file: ...}"
    ),
    "a key of a medium beside it": Bad(
        side("uart: /dev/x, baud: 9600"), 4, "write it in uart: uart: {baud: ...}"
    ),
    "unknown gateway": Bad(ONE + "buses: {p: {on: b}}\n", 3, 'no gateway "b"'),
    "same key twice": Bad(ONE + "name: u\n", 3, "name"),
    "number to the base 8": Bad(side("uart: {port: /dev/x, baud: 0115200}"), 4, "write 115200"),
    "port to the base 60": Bad(side("tcp: {host: h, port: 12:30}"), 4, "write the plain number"),
    "nodes to the base 8": Bad(side("uart: {port: /dev/x, rs485: {nodes: [001, 2]}}"), 4, "write 1"),
    "token to the base 8": Bad(side("uart: /dev/x", ", pattern: [fridge, 010]"), 4, "put it in quotes"),
    "line feed in a path": Bad(side('uart: {port: "/dev/x\\nExecStartPre=+/bin/sh"}'), 4, "holds U+000A"),
    "bidi override in a path": Bad(ONE + 'buses: {p: {on: a}}\nkeys: "/etc/x\\u202e"\n', 4, "holds U+202E"),
    # hosts and addresses
    "impossible gateway": Bad(
        "name: t\ngateways: {a: {address: 10.0.0.311}}\nbuses: {p: {on: a}}\n", 2, "no IPv4"
    ),
    "gateway at a wildcard": Bad(
        "name: t\ngateways: {a: {address: 0.0.0.0}}\nbuses: {p: {on: a}}\n", 2, "others can"
    ),
    "impossible address": Bad(listen("tcp://10.0.0.311:5"), 3, "no IPv4"),
    "label empty": Bad(bus("dial: 'tcp://a..b:5'"), 3, "is no host"),
    "label too long": Bad(bus(f"dial: 'tcp://{'a' * 64}:5'"), 3, "is no host"),
    "label empty in ws": Bad(bus("dial: 'ws://a..b:5/x'"), 3, "is no host"),
    "port too high": Bad(listen("tcp://127.0.0.1:70000"), 3, '"70000" is no port'),
    "no port": Bad(listen("tcp://127.0.0.1"), 3, "no port"),
    "dialled wildcard": Bad(bus("dial: 'tcp://0.0.0.0:5'"), 3, "not dialled"),
    "unknown scheme": Bad(listen("udp://127.0.0.1:5"), 3, "must start with"),
    "socket path too long": Bad(listen("ipc:///" + "x" * 120), 3, "at most 107"),
    "address of another": Bad(
        TWO + BUSES.replace("0.0.0.0:5'}, q", "10.0.0.2:5'}, q"), 3, "address of gateway b"
    ),
    "TCP stream at another's": Bad(
        TWO + BUSES + "bridges: {x: {on: a, join: [bus: p, tcp: {host: 10.0.0.2, port: 7, mode: listen}]}}\n",
        4,
        "address of gateway b",
    ),
    "broker at another's": Bad(
        TWO + BUSES + broker("listen: 'tcp://10.0.0.2:9'", ""), 4, "address of gateway b"
    ),
    "nobody in this process": Bad(bus("dial: 'inproc://x'"), 3, "only its own process"),
    "bus out of reach": Bad(
        TWO
        + BUSES.replace("0.0.0.0:5'}, q", "127.0.0.1:5'}, q")
        + "bridges: {x: {on: b, join: [bus: p, bus: q]}}\n",
        4,
        "no address without trunk that gateway b can dial",
        "b",
    ),
    # two things at one place
    "a bus on the port of the status page": Bad(
        "name: t\ngateways: {a: {status: 'http://127.0.0.1:5'}}\nbuses: {p: {on: a, listen: 'tcp://0.0.0.0:5'}}\n",
        3,
        "taken by the status page of a",
    ),
    "two on one port": Bad(bus("listen: ['tcp://0.0.0.0:5', 'tcp://127.0.0.1:5']"), 3, "taken by bus p"),
    "bus and broker on one port": Bad(
        listen("tcp://127.0.0.1:5") + broker("listen: 'tcp://*:5'", ""), 4, "taken by bus"
    ),
    "two on one socket": Bad(bus("listen: ['ipc:///tmp/x', 'ipc:///tmp//x']"), 3, "taken by bus p"),
    "two gateways on one line of one machine": Bad(
        "name: t\ngateways: {a: {}, b: {}}\nbuses: {p: {on: a}, q: {on: b}}\nbridges:\n"
        "  x: {on: a, join: [bus: p, uart: /dev/x]}\n  y: {on: b, join: [bus: q, uart: /dev/x]}\n",
        6,
        "a and b are one machine, so give each its own",
    ),
    "two on one line": Bad(
        ONE + "bridges: {x: {on: a, join: [uart: /dev/x, uart: /dev//x]}}\n", 3, "taken by bridge x"
    ),
    "two with one node id": Bad(
        TWO
        + BUSES
        + "bridges:\n"
        + "  x: {on: a, join: [bus: p, can: {interface: udp_multicast, channel: 239.0.0.1, node: 7}]}\n"
        + "  y: {on: b, join: [bus: q, can: {interface: udp_multicast, channel: 239.0.0.1, node: 7}]}\n",
        6,
        "CAN node id 7",
    ),
    "no node id": Bad(
        "name: t\ngateways: {a: }\nbridges: {x: {on: a, join: [can: can0, uart: /dev/x]}}\n",
        3,
        "needs a node id",
    ),
    "one name twice": Bad(
        bus("listen: 'tcp://127.0.0.1:5'") + broker("listen: 'tcp://*:9'", "").replace("m:", "p:"),
        3,
        "is the name of",
    ),
    # failover
    "failover without a broker": Bad(
        TWO + BUSES.split(", q")[0] + "}\nbridges: {x: {on: [a, b], join: [bus: p, can: {channel: can0}]}}\n",
        4,
        "add a broker",
    ),
    "candidate twice": Bad(
        ONE + BROKER + "bridges: {x: {on: [a, a], join: [uart: /dev/x, uart: /dev/y]}}\n", 4, "twice"
    ),
    "broker on WebSocket": Bad(broker("listen: 'ws://127.0.0.1:5/x'"), 3, "a broker listens on tcp://"),
    "broker with TLS and no certificate": Bad(
        broker("listen: {url: 'tls+tcp://127.0.0.1:5'}"), 3, "cert_file"
    ),
    "broker on IPv6": Bad(broker("listen: 'tcp://[::1]:5'"), 3, "a broker listens on tcp://"),
    "broker on any port": Bad(broker("listen: 'tcp://127.0.0.1:0'"), 3, "not 0"),
    "broker of an IPv6 gateway": Bad(
        "name: t\ngateways: {a: {address: 'fd00::1'}}\n" + broker("listen: 'tcp://*:5'", ""), 3, "IPv4"
    ),
    "broker out of reach": Bad(
        TWO + BUSES + "brokers: {m: {on: a, listen: 'tcp://127.0.0.1:9'}, n: {on: b, listen: 'tcp://*:9'}}\n",
        4,
        "which b cannot reach",
    ),
    "broker as trunk": Bad(
        broker("listen: {url: 'tcp://127.0.0.1:5', trunk: true}"), 3, 'unknown key "trunk"'
    ),
    "broker with a queue": Bad(
        broker("listen: {url: 'tcp://127.0.0.1:5', queue_bytes: 5}"), 3, 'unknown key "queue_bytes"'
    ),
    "lease too long": Bad(broker("listen: 'tcp://127.0.0.1:5', lease_ms: 99999999"), 3, "out of range"),
    # keys without effect
    "queue of inproc": Bad(listen("inproc://x", ", queue_bytes: 5000000"), 3, "queue_bytes has no effect"),
    "queue of an inproc side": Bad(
        side("url: {address: 'inproc://x', queue_bytes: 5000000}"), 4, "queue_bytes has no effect"
    ),
    "origin with a path": Bad(
        listen("ws://127.0.0.1:5/x", ", origins: ['http://panel.example/']"), 3, "is no origin"
    ),
    "origins of TCP": Bad(
        listen("tcp://127.0.0.1:5", ", origins: ['http://panel.example']"), 3, "origins are for"
    ),
    "origins of a side that dials": Bad(
        side("url: {address: 'ws://h:5/x', origins: ['http://panel.example']}"), 4, "origins are for"
    ),
    "peers by name without certificates": Bad(
        listen("tls+tcp://127.0.0.1:5", TLS % "" + ", peers: [pump]"), 3, "peers by name need certificates"
    ),
    "peers by name on TCP": Bad(listen("tcp://127.0.0.1:5", ", peers: [pump]"), 3, "need certificates"),
    "peers of inproc": Bad(listen("inproc://x", ", peers: [{send: [a]}]"), 3, "peers has no effect"),
    "peers by address on IPC": Bad(listen("ipc:///x", ", peers: [{address: 10.0.0.1}]"), 3, "has no address"),
    "network with host bits": Bad(
        listen("tcp://127.0.0.1:5", ", peers: [{address: 10.0.0.1/8}]"), 3, "has host bits set"
    ),
    "nobody may join": Bad(listen("tcp://127.0.0.1:5", ", peers: []"), 3, "it takes 1 to 1024"),
    "bound of inproc": Bad(listen("inproc://x", ", message_bytes: 5000"), 3, "message_bytes has no effect"),
    "certificate for plain TCP": Bad(listen("tcp://127.0.0.1:5", TLS % ""), 3, "tls is for"),
    "TLS without a certificate": Bad(listen("wss://127.0.0.1:5/x"), 3, "cert_file"),
    "key without certificate": Bad(
        bus("dial: {url: 'wss://h:5/x', tls: {key_file: k}}"), 3, "without cert_file"
    ),
    "trunk of a plain bus": Bad(
        side("uart: /dev/x").replace("bus: p", "{bus: p, trunk: true}"), 4, "is no trunk"
    ),
    "policy of a bus": Bad(
        side("uart: /dev/x").replace("bus: p", "{bus: p, shed: oldest}"), 4, "nothing waits for a bus"
    ),
    "policy of inproc": Bad(side("url: 'inproc://x', shed: oldest"), 4, "state a rate"),
    "classic without FD": Bad(side("can: {channel: can0, mixed: classic}"), 4, "without fd: true"),
    "data rate without FD": Bad(side("can: {channel: can0, data_bitrate: 2000000}"), 4, "needs fd: true"),
    "flow control elsewhere": Bad(
        side("uart: {port: 'socket://h:5', rtscts: true}"), 4, "rtscts has no effect"
    ),
    "rate below its pattern": Bad(
        side("uart: /dev/x", ", rates: [{pattern: [a, b], frames_per_s: 1, tokens: 1}]"), 4, "tokens"
    ),
    # media
    "dialled wildcard stream": Bad(side("tcp: {host: '*', port: 5}"), 4, "not dialled"),
    "port 0 dialled": Bad(side("tcp: {host: h, port: 0}"), 4, "not dialled"),
    "serial server nowhere": Bad(side("uart: 'socket://a..b:5'"), 4, "is no host"),
    "no multicast group": Bad(
        side("multicast: {group: 10.0.0.1, port: 5, interface: lo}"), 4, "no multicast group"
    ),
    "bus without a name": Bad(side("uart: /dev/x").replace("bus: p", "{bus: }"), 4, "bus has no name"),
    "two media on a side": Bad(side("uart: /dev/x, can: can0"), 4, "a side is one of"),
    "unknown broker": Bad(side("tmq: {brokers: mian}") + BROKER.replace("m:", "main:"), 4, 'mean "main"'),
    "no broker in the file": Bad(side("tmq: {}"), 4, "add one to this file"),
    "broker at no address": Bad(side("tmq: {brokers: 'gw-a:9942'}"), 4, "written tcp://HOST:PORT"),
    "broker of a side out of reach": Bad(
        TWO
        + BUSES
        + "brokers: {m: {on: a, listen: 'tcp://127.0.0.1:9'}}\n"
        + "bridges: {x: {on: b, join: [bus: q, tmq: {}]}}\n",
        4,
        "which b cannot reach",
        "b",
    ),
    "allow on TMQ": Bad(side("tmq: {brokers: 'tcp://h:1'}, allow: a"), 4, "leave pattern and allow out"),
    "trunk on TMQ": Bad(side("tmq: {brokers: 'tcp://h:1'}, trunk: true"), 4, "cannot be a trunk"),
    "ring through a broker": Bad(
        ONE
        + "buses: {p: {on: a, listen: 'tcp://127.0.0.1:5'}}\n"
        + "bridges: {x: {on: a, join: [bus: p, tmq: {brokers: 'tcp://h:1'}, tmq: {brokers: 'tcp://h:1'}]}}\n",
        4,
        "frames would go round",
    ),
    "target twice": Bad(side("i2c: {bus: 1, targets: [8, 8]}"), 4, "twice"),
    # the whole
    "nothing runs": Bad(TWO + "buses: {p: {on: a}}\n", 2, "nothing runs on gateway b"),
    "tap of another's bus": Bad(
        TWO + BUSES + "devices: {t: {on: a, tap: q, directory: /tmp/x}}\n", 4, "does not run on a"
    ),
    "tap twice": Bad(
        bus("listen: []") + "devices: {t: {on: a, tap: [p, p], directory: /tmp/x}}", 4, "twice in tap"
    ),
    "frames go round": Bad(
        ONE
        + "buses: {p: {on: a, listen: 'tcp://127.0.0.1:5'}, q: {on: a}}\n"
        + "bridges: {x: {on: a, join: [bus: p, bus: q]}, y: {on: a, join: [bus: p, bus: q]}}\n",
        4,
        "frames would go round",
    ),
    "a device hears itself": Bad(
        bus("listen: []")
        + "devices: {d: {on: a, syndication: 'tcp://127.0.0.1:5', producers: [{bus: p, pattern: x}],\n"
        + "    queries: [{query: has y, bus: p, pattern: x/y}]}}\n",
        5,
        "comes back",
    ),
    "too much for the line": Bad(
        side("uart: /dev/x", ", rates: [{frames_per_s: 100000}]"), 4, "lower the rate"
    ),
    "queue of a side below a message": Bad(
        side("url: {address: 'tcp://h:5', message_bytes: 16777216}"), 4, "at least message_bytes"
    ),
    "an alarm of nothing": Bad(
        bus("listen: []") + "alarms: {x: {bus: p, above: 1, of: in}}\n", 4, "of is for a link"
    ),
    "queue below a message": Bad(bus("queue_bytes: 5, message_bytes: 6"), 3, "at least message_bytes"),
}
