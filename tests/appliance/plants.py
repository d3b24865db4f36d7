"""Plants with every kind of part, medium, protocol and device, each small, for tests over all settings.

`PORT1` and so on stand for ports, `DIR` for a directory with the files that `furnish` makes, and `CHANNEL`
for a CAN channel that nobody has. Devices that serial lines name are not there, so their links wait.
"""

import re
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

from bus.keys import new_key
from tests.helpers import ROOT
from tests.helpers.certificates import own_tls
from tests.helpers.ports import free_channel, free_port

_TLS: Final = "{ca_file: DIR/ca.pem, cert_file: DIR/own.pem}"
_GW: Final = "gw: {node: 5, status: {serve: false}}"
_FAR: Final = "far: {address: 127.0.0.2, node: 6}"


def _plain(more: str = "", gateways: str = _GW) -> str:
    listen = "{on: gw, listen: 'tcp://127.0.0.1:PORT%s'}"
    return f"gateways: {{{gateways}}}\nbuses: {{b: {listen % 1}, c: {listen % 2}}}\n{more}"


def _bridged(side: str, more: str = "", devices: str = "") -> str:
    return _plain(f"bridges: {{br: {{on: gw, join: [{{bus: b}}, {{{side}}}]{more}}}}}\n{devices}")


def _device(settings: str) -> str:
    return _plain(f"devices: {{d: {{on: gw, {settings}}}}}\n")


def _trunked(more: str, gateways: str = f"{_GW}, {_FAR}") -> str:
    near = "{on: gw, listen: ['tcp://127.0.0.1:PORT1', {url: 'tcp://127.0.0.1:PORT2', trunk: true}]}"
    return (
        f"gateways: {{{gateways}}}\nbuses: {{b: {near}, "
        f"c: {{on: far, listen: 'tcp://127.0.0.2:PORT1', trunks: b}}}}\n{more}"
    )


def _line(protocol: str) -> str:
    return _bridged(f"uart: {{port: DIR/tty}}, protocol: {{{protocol}}}")


def _asked(protocol: str) -> str:
    return _bridged(f"tcp: {{host: 127.0.0.1, port: PORT3}}, protocol: {{{protocol}}}")


_LISTENS: Final = "tcp: {host: 127.0.0.1, port: PORT3, mode: listen}"
_TEXTS: Final[dict[str, str]] = {
    "page": _plain(
        gateways="gw: {status: {listen: 'http://127.0.0.1:PORT4', token_file: DIR/one.token, "
        "ack_file: DIR/ack}}"
    ),
    "page with tls": _plain(
        gateways="gw: {status: {listen: 'https://127.0.0.1:PORT4', tls: {cert_file: DIR/own.pem}}}"
    ),
    "names": _plain(
        "names: {list: [[n, m]], file: DIR/names.txt}\nkeys: [DIR/one.key]\nevents: b\nlogs: c\n"
        "alarms: {a: {bus: b, pattern: [q], missing_s: 5}}\n"
    ),
    "addresses": f"gateways: {{{_GW}}}\nbuses: {{b: {{on: gw, listen: ["
    f"{{url: 'tls+tcp://127.0.0.1:PORT1', tls: {_TLS}}}, "
    "{url: 'ws://127.0.0.1:PORT2', origins: ['https://a.example']}, "
    "{url: 'tcp://127.0.0.1:PORT3', last_values: true, "
    "peers: [{address: 127.0.0.0/8, send: [[a]], hear: [[b]]}]}], "
    f"dial: [{{url: 'tls+tcp://127.0.0.1:PORT4', tls: {_TLS}}}]}}}}\n",
    "trunks": f"gateways: {{{_GW}, {_FAR}}}\nbuses: {{b: {{on: gw, listen: ['tcp://127.0.0.1:PORT1', "
    "{url: 'tcp://127.0.0.1:PORT2', trunk: true, keys: DIR/one.key, age_ms: 900}], "
    "dial: [{url: 'tcp://127.0.0.1:PORT3', trunk: true, keys: DIR/one.key}], trunks: [{bus: c}]}, "
    "c: {on: far, listen: [{url: 'tcp://127.0.0.2:PORT4', trunk: true}]}}\n",
    "durable": f"gateways: {{{_GW}, {_FAR}}}\nbuses: {{b: {{on: gw, listen: ['tcp://127.0.0.1:PORT1', "
    "{url: 'tcp://127.0.0.1:PORT2', trunk: true, durable: {directory: DIR/journal, for: [far], "
    "classes: [{pattern: [[z]], age_ms: 1000}]}}]}, c: {on: far, listen: 'tcp://127.0.0.2:PORT1'}}\n",
    "can": _bridged(
        "can: {channel: CHANNEL, interface: virtual}, "
        "shed: {policy: conflate, age_ms: 80, queue_bytes: 9000, rate: 50}"
    ),
    "can fd": _bridged(
        "can: {channel: CHANNEL, fd: true, bitrate: 500000, data_bitrate: 2000000, node: 7, subject: 100, "
        "subjects: {x/y: {subject: 4711}, z: 12}}"
    ),
    "raw": _bridged(
        "can: {channel: CHANNEL}, protocol: {raw: {receive: '0x100-0x200', send: '0x300', "
        "ids: {'0x101': [a, b]}}}"
    ),
    "dbc": _bridged("can: {channel: CHANNEL}, protocol: {dbc: {file: DIR/one.dbc, send: [Cells]}}"),
    "uart": _bridged("uart: {port: DIR/tty}, shed: newest", ", rates: [{pattern: [p], frames_per_s: 2}]"),
    "rs485": _bridged("uart: {port: DIR/tty, rs485: {nodes: [1, 2]}}, trunk: true"),
    "lines": _line("lines: {receive: l/x, send: l/y}"),
    "nmea": _line("nmea: {root: gps, values: true}"),
    "vedirect": _line("vedirect: {root: solar}"),
    "p1": _line("p1: {root: meter}"),
    "jsonl": _line("jsonl: {root: panel}"),
    "slip": _line("slip: {receive: a/b}"),
    "bytes": _line("bytes: {receive: a/b, send: a/c}"),
    "xbee": _line("xbee: {root: radio, nodes: {k: 0013A20040A1B2C3}}"),
    "modbus": _asked(
        "modbus: {registers: [{pattern: m/x, device: 1, register: 3, type: u16}, "
        "{pattern: m/y, device: 1, kind: holding, register: 5, type: i16, write: true, min: 0, max: 9}, "
        "{pattern: m/t, device: 2, register: 50, type: ascii, length: 4}], "
        "devices: [{device: 1, timeout_ms: 90}]}"
    ),
    "queries": _asked(
        "queries: {queries: [{pattern: q/x, ask: 'V?', type: number}, "
        "{pattern: q/y, read: false, write: true, set: 'V {data}', min: 0, max: 3}]}"
    ),
    "registers": _bridged(
        "i2c: {bus: 97}, protocol: {registers: {registers: "
        "[{pattern: r/x, target: 64, register: 1, type: u16}]}}"
    ),
    "i2c": _bridged("i2c: {bus: 97, targets: [66]}"),
    "multicast": _bridged("multicast: {group: 239.9.42.77, port: PORT3, interface: 127.0.0.1}"),
    "radio": _bridged("ieee802154: {interface: wpan97, pan: 48879}"),
    "udp": _bridged("udp: {host: 127.0.0.1, port: PORT3, own_port: PORT4}"),
    "cannelloni": _bridged("udp: {host: 127.0.0.1, port: PORT3}, protocol: {cannelloni: {send: all}}"),
    "url": _bridged(
        "url: {address: 'ws://127.0.0.1:PORT3', mode: listen, origins: ['https://a.example']}, "
        "opaque: op, trunk: true"
    ),
    "url with tls": _bridged(
        f"url: {{address: 'tls+tcp://127.0.0.1:PORT3', mode: listen, tls: {_TLS}}}, trunk: true, "
        "keys: DIR/one.key"
    ),
    "tmq": _bridged("tmq: {brokers: 'tcp://127.0.0.1:PORT3', subscribe: [[s]], publish: [[t]]}"),
    "front": _bridged(
        f"{_LISTENS}, prefix: p, strip: st, rename: {{a/b: c, d: e}}, unchanged: drop, refresh_ms: 500, "
        "limits: [{pattern: [l], frames_per_s: 3}], allow: {in: [[a]], out: [[b]]}, deny: {in: [[a, x]]}, "
        "segment: sg"
    ),
    "leased": _trunked(
        "keys: DIR/one.key\nbrokers: {main: {on: gw, listen: ['tcp://127.0.0.1:PORT3', "
        f"{{url: 'tls+tcp://127.0.0.1:PORT4', tls: {_TLS}}}]}}, "
        "sp: {on: far, listen: 'tcp://127.0.0.2:PORT3'}}\n"
        "bridges: {br: {on: [gw, far], pattern: [f], join: [{bus: {gw: b, far: c}}, "
        "{can: {channel: CHANNEL}, protocol: {raw: {receive: '0x100', send: '0x200'}}}]}}\n"
    ),
    "parallel": _trunked(
        "bridges: {br: {on: [gw, far], failover: parallel, pattern: [f], join: [{bus: {gw: b, far: c}, "
        "trunk: true}, {can: {channel: CHANNEL}, trunk: true}]}}\n"
    ),
    "tap": _bridged(
        f"{_LISTENS}, protocol: {{lines: {{receive: a}}}}",
        devices="devices: {d: {on: gw, tap: [b, br], directory: DIR/capture}}\n",
    ),
    "log": _plain(
        "devices: {d: {on: gw, log: [b], directory: DIR/capture}, "
        "u: {on: gw, upload: DIR/capture, to: DIR/up}}\n"
    ),
    "cache": _device("cache: [b]"),
    "catalog": _device("catalog: 'tcp://127.0.0.1:PORT3', records: DIR/catalog.json, beacon: false"),
    "proxy that listens": _device(
        f"proxy: 'tcp://127.0.0.1:PORT3', listen: 'tls+tcp://127.0.0.1:PORT4', tls: {_TLS}, offers: ['a*']"
    ),
    "proxy that dials": _device(
        f"proxy: 'tcp://127.0.0.1:PORT3', dial: 'tls+tcp://127.0.0.1:PORT4', tls: {_TLS}, accepts: [b]"
    ),
    "syndication": _device(
        "syndication: 'tcp://127.0.0.1:PORT3', database: DIR/syndication.db, producers: "
        "[{bus: b, pattern: [p], metadata: {a: 1}}], queries: [{query: 'has a', bus: c, pattern: [q]}]"
    ),
    "telemetry": _bridged(
        _LISTENS,
        devices="devices: {d: {on: gw, telemetry: [br], to: 'https://127.0.0.1:PORT4', "
        "ca_file: DIR/ca.pem}}\n",
    ),
    "alarms": _bridged(
        _LISTENS,
        devices="alarms: {v: {bus: b, pattern: [v], above: 3, notify: [w, m]}, "
        "l: {link: br/tcp, missing_s: 4, notify: k}, r: {link: br, of: in, above: 5, changed_by: 4}}\n"
        "outlets: {w: {webhook: 'https://127.0.0.1:PORT4/x', token_file: DIR/one.token}, "
        "k: {command: [/bin/true]}, m: {mail: a@b.example, from: c@d.example, user: u, "
        "password_file: DIR/one.token}}\n",
    ),
}
PLANTS: Final = tuple(_TEXTS)
"""The names of all plants."""
WITH_PROCESSES: Final = frozenset({"tap", "log"})
"""The plants whose devices start a process."""


class _Loader(yaml.SafeLoader):
    """A reader for which `on` is a text, as it is for ours."""


_Loader.yaml_implicit_resolvers = {
    sign: [one for one in found if one[0] != "tag:yaml.org,2002:bool"]
    for sign, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|false)$"), list("tf"))


class Site:
    """A place for plants: a directory with files, ports, and a channel, the same for all plants."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._words = {f"PORT{number}": str(free_port()) for number in range(1, 6)}
        self._words |= {"DIR": str(directory), "CHANNEL": free_channel()}

    def filled(self, text: str) -> str:
        """Return a text with its ports, paths and channels."""
        return re.sub("|".join(self._words), lambda found: self._words[found[0]], text)

    def plant(self, name: str) -> dict[str, Any]:
        """Return the document of a plant."""
        found: dict[str, Any] = yaml.load(self.filled(f"name: plant\n{_TEXTS[name]}"), _Loader)
        return found


def furnish(directory: Path) -> Site:
    """Make the files that the plants name, each but the directory's own with another one beside it."""
    own_tls(directory)
    (directory / "other").mkdir()
    own_tls(directory / "other")
    write = partial(Path.write_text, encoding="utf-8")
    for name in ("one", "two"):
        new_key(str(directory / f"{name}.key"))
        write(directory / f"{name}.token", f"0123456789abcdef-{name}\n")
        write(directory / f"{name}.dbc", (ROOT / "examples/engine/engine.dbc").read_text())
    write(directory / "ack", "ann 0123456789abcdef-ann\n")
    write(directory / "names.txt", "x/y\nzz\n")
    write(directory / "others.txt", "other\n")
    return Site(directory)
