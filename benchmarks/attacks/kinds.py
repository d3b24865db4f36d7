"""The attacks, each with the topology that it meets and the pair that must not notice it."""

from typing import Final, NamedTuple

from benchmarks.attacks.peers import GROUP

_HEAD: Final = "name: attacked\ngateways: {{g: {{address: 127.0.0.1, node: 1, status: {status}}}}}\n"
_QUIET: Final = "{{serve: false}}"
_HEARD: Final = "{{url: 'tcp://127.0.0.1:{bus}', peers: [{{hear: [honest]}}]}}"
_BUS: Final = f"buses: {{{{b: {{{{on: g, listen: [{_HEARD}{{more}}]}}}}}}}}\n"
_TLS: Final = (
    "{{cert_file: '{folder}/own.pem', ca_file: '{folder}/peers.pem'{proof}}}"  # peers of `named_tls`
)
_GROUP: Final = f"{{{{multicast: {{{{group: {GROUP}, port: {{group}}, interface: lo}}}}"
_FEW: Final = 256


class Attack(NamedTuple):
    """One attack: `name` is also that of the attacker, `pair` that of the honest.

    `topology` has places for ports, and `folder` for the directory of keys and certificates. The gateway may
    open so many `files`; 0: as many as this process.
    """

    name: str
    title: str
    pair: str
    topology: str
    files: int = 0


def _buses(more: str = "", status: str = _QUIET) -> str:
    return _HEAD.replace("{status}", status) + _BUS.replace("{more}", more)


def _bridged(side: str, before: str = "") -> str:
    return f"{before}{_buses()}bridges: {{{{r: {{{{on: g, join: [{{{{bus: b}}}}, {side}]}}}}}}}}\n"


_WS: Final = _buses(", 'ws://127.0.0.1:{other}/'")
_PLAIN_GROUP: Final = _bridged(f"{_GROUP}}}}}")
_CATALOG: Final = "devices:\n  names: {{on: g, catalog: 'tcp://127.0.0.1:{catalog}'}}\n"
_PROVEN: Final = _TLS.replace("{proof}", ", require_peer_cert: true")
_SIDE: Final = _TLS.replace("{proof}", "")

ATTACKS: Final = (
    Attack(
        "tls",
        "hellos of TLS, without a certificate",
        "bus",
        _buses(f", {{{{url: 'tls+tcp://127.0.0.1:{{other}}', tls: {_PROVEN}}}}}"),
    ),
    Attack(
        "crowd",
        "2,000 connections that say a byte at a time",
        "bus",
        _buses().replace("b:", "c: {{on: g, listen: ['tcp://127.0.0.1:{other}']}}, b:", 1),
    ),
    Attack("heads", "heads of HTTP that do not end", "bus", _WS),
    Attack("pings", "pings of WebSocket", "bus", _WS),
    Attack("pongs", "pongs of WebSocket", "bus", _WS),
    Attack("empty", "empty fragments of WebSocket", "bus", _WS),
    Attack("bytes", "fragments of WebSocket of one byte", "bus", _WS),
    Attack(
        "page",
        "silent connections to the status page",
        "page",
        _buses(status="{{listen: 'http://127.0.0.1:{page}', token_file: '{folder}/token'}}"),
    ),
    Attack(
        "zmtp",
        "greeted connections to a catalog",
        "catalog",
        _HEAD.replace("{status}", _QUIET) + _CATALOG,
        _FEW,
    ),
    Attack("commands", "commands of ZMTP", "catalog", _HEAD.replace("{status}", _QUIET) + _CATALOG),
    Attack(
        "proxy",
        "silent connections to a proxy",
        "catalog",
        _HEAD.replace("{status}", _QUIET)
        + _CATALOG
        + "  far: {{on: g, proxy: 'tcp://127.0.0.1:{catalog}', listen: 'tls+tcp://127.0.0.1:{other}', "
        f"offers: ['*'], accepts: ['*'], tls: {_SIDE}}}}}\n",
        _FEW,
    ),
    Attack(
        "subscriptions",
        "1,000 subscriptions of a stranger to everything, TMQ",
        "tmq",
        _bridged("{{tmq: {{brokers: br, subscribe: [], publish: [honest]}}}}")
        + "brokers: {{br: {{on: g, listen: 'tcp://127.0.0.1:{broker}'}}}}\n",
    ),
    Attack("fragments", "fragments of multicast that never end", "long", _PLAIN_GROUP),
    Attack("envelopes", "forged envelopes by multicast", "group", _PLAIN_GROUP),
    Attack("tiny", "frames without data by multicast, 170 a datagram", "group", _PLAIN_GROUP),
    Attack("long", "the longest datagrams, full of small frames", "group", _PLAIN_GROUP),
    Attack(
        "seals",
        "forged seals by multicast",
        "sealed",
        _bridged(f"{_GROUP}, trunk: true}}}}", "keys: ['{folder}/key']\n"),
    ),
    Attack(
        "broadcast",
        "frames without data by UDP",
        "broadcast",
        _bridged("{{udp: {{host: 127.255.255.255, port: {page}, own_port: {other}, broadcast: true}}}}"),
    ),
    Attack(
        "heartbeats",
        "heartbeats of unknown services to a catalog",
        "beats",
        _HEAD.replace("{status}", _QUIET) + _CATALOG,
    ),
    Attack(
        "can",
        "10,000 frames a second of the first priority on CAN FD",
        "can",
        _bridged(
            f"{{{{can: {{{{interface: udp_multicast, channel: {GROUP}, fd: true, "
            "options: {{port: {group}, hop_limit: 0}}}}}}"
        ),
    ),
    Attack(
        "raw",
        "frames without data by plain TCP",
        "bus",
        _bridged("{{tcp: {{host: 127.0.0.1, port: {other}, mode: listen}}}}"),
    ),
    Attack(
        "small",
        "messages of a few bytes to a bus with a bridge",
        "apart",
        _bridged("{{bus: c}}").replace(
            "buses: {{b:", f"buses: {{{{c: {{{{on: g, listen: [{_HEARD.replace('bus', 'other')}]}}}}, b:"
        ),
    ),
)
