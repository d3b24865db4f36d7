"""Targets of catalogs, their clients, beacons, and the values of syndication."""

import json
from struct import pack
from typing import Any, Final

import msgpack

from appliance.plant.asking import timed
from appliance.plant.note import read_note
from appliance.plant.verdict import Seen, judged
from devices.dbp.beacon import wire as beacon
from devices.dbp.catalog import wire
from devices.dbp.catalog.body import pack_object, read_objects
from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.entry import read as read_entry
from devices.dbp.catalog.wire import Command, Received, Refused
from devices.dbp.monitor import wire as monitor
from devices.dbp.nodes import requests
from devices.dbp.nodes.listing import read_listing
from devices.dbp.nodes.registering import Registration
from devices.dbp.proxy.offers import takes_of
from devices.syndication.buses.codecs import codec
from devices.syndication.buses.rules import Coded
from tests.fuzz.target import Pieces, Target, recorded, records

_BOUNDS: Final = Bounds()
_SERVICE: Final = {
    "name": "Rohan",
    "interfaces": {"router": {"ip": "127.0.0.1", "port": 5555}, "pub": {"ip": "::1", "port": 5556}},
    "reg_time": 1.5,
    "topics": ["a", "é"],
    "function": "horses",
    "liveliness": 500,
}


def _command(pieces: Pieces) -> object:
    """Read a command of DBP, and judge what it registers or lists."""
    found = wire.parse(list(records(b"".join(pieces))), _BOUNDS)
    if isinstance(found, Refused) or not found.fields:
        return found
    entries = [read_entry(found.fields, "10.0.0.7", strict, _BOUNDS) for strict in (False, True)]
    return found, entries, _heard(found), read_listing(found.fields), monitor.read_lives(found.fields)


def _heard(said: Received) -> object:
    """Have a service hear a command as the answer to its registration, and then as that to an update."""
    service = Registration("Rohan", {}, 1.0)
    return service.open(0.0), service.heard(said, 1.0), service.heard(said, 2.0), service.tick(9.0)


def _command_seeds() -> list[bytes]:
    life = {"Rohan": {"state": "up", "silence_ms": 5, "interval_ms": 9, "host": "h", "beats": True}}
    huge = b'{"liveliness": 1%s}' % (b"0" * 400)
    bodies = (
        huge,
        pack_object(_SERVICE),
        pack_object({"Rohan": _SERVICE}),
        pack_object(life),
        b'{"a": "\\ud800"}',
    )
    words = (wire.REGISTRATION, wire.INFO_REPLY, wire.UPDATE, wire.APPROVED, wire.ACKNOWLEDGED)
    made = [Command(word, (body[:90], body[90:])) for word in words for body in bodies]
    texts = (wire.INFO_REQUEST, wire.HEARTBEAT, wire.DENIED, wire.DISCONNECT, wire.PING, wire.MONITOR)
    made += [Command(word, (b"Rohan",)) for word in texts]
    return [recorded(*wire.pack(command, binary, 1.5)) for command in made for binary in (False, True)]


def _beat(pieces: Pieces) -> object:
    return wire.parse_datagram(b"".join(pieces), _BOUNDS)


def _request(pieces: Pieces) -> object:
    """Read a request, as a service and its mirror do."""
    frames = list(records(b"".join(pieces)))
    found = requests.parse(frames)
    if not isinstance(found, str):
        again = requests.parse(requests.pack(found, 1.0))
        assert isinstance(again, requests.Request)
        assert (again.word, again.data) == (found.word, found.data)
    return found, monitor.parse(frames), [monitor.read_grant(frame) for frame in frames]


def _request_seeds() -> list[bytes]:
    request = requests.pack(requests.Request("temp", (b"{}", b"x"), True), 1.5)
    passed = monitor.pack(monitor.Passed("router", "in", 1.5, "10.0.0.7", (b"", b"temp", b"1.0")))
    grant = monitor.Grant("10.0.0.7", 5555, 2000).pack()
    return [recorded(*request), recorded(*passed), recorded(grant, grant[:-3])]


def _beacon(pieces: Pieces) -> object:
    found = beacon.parse(b"".join(pieces))
    if isinstance(found, beacon.Beacon) and (found.name or found.kind == "catalog"):
        assert beacon.parse(beacon.pack(found)) == found
    return found


def _beacon_seeds() -> list[bytes]:
    return [
        beacon.pack(beacon.Beacon("bus", 5555, "ws", "plant é")),
        beacon.pack(beacon.Beacon("catalog", 5555)),
    ]


def _offer(pieces: Pieces) -> object:
    """Read an offer of a proxy. What is taken of it can be registered with a catalog."""
    fields = read_objects(b"".join(pieces), _BOUNDS) or {}
    offer = {name: value for name, value in fields.items() if isinstance(value, dict)}
    taken = takes_of(offer, ("*",), "own")
    return [pack_object(dict(one.fields)) for one in taken.values()]


_RULES: Final = (
    Coded(codec="raw"),
    Coded(codec="utf-8"),
    Coded(codec="json"),
    Coded(codec="msgpack"),
    Coded(codec="struct", format="<hB3s"),
)
_CODECS: Final = tuple(codec(rule) for rule in _RULES)


def _coded(pieces: Pieces) -> object:
    """Decode data of frames, and encode values, by every codec."""
    data = b"".join(pieces)
    return [(one.decode(data), one.encode(data)) for one in _CODECS]


def _coded_seeds() -> list[bytes]:
    values: list[Any] = [{"a": [1, None, 2.5, "é", True]}, "text", b"bytes", -1, 2**63, [1, 2, b"abc"]]
    stamp = msgpack.packb(msgpack.Timestamp(2**40, 2))
    packed = [msgpack.packb(value) for value in values]
    texts = [
        json.dumps(value).encode() for value in values if not isinstance(value, bytes) and value != values[-1]
    ]
    return [*packed, *texts, stamp, pack("<hB3s", 1, 2, b"abc"), b'{"a":1e999}', b"[" * 40 + b"]" * 40]


_NOTE: Final = {
    "topology": "hall", "gateway": "gw-b", "product": "1", "file": "ab", "time_ns": 5,
    "started_ns": 1, "page": "",
    "roles": [{"bridge": "m", "lease": "m", "role": "active", "ready": True, "epoch": 1, "holder": "gw-b"}],
    "marks": {"bus b": {"state": "ok", "text": "up", "lines": ["up"], "ways": []}},
}  # fmt: skip


def _note(pieces: Pieces) -> object:
    """Read a note, and judge a plant by it."""
    note = read_note(b"".join(pieces))
    seen = {"gw-b": Seen(timed("gw-b", note, 7, 3))}
    return judged(_NOTE | {"gateway": "gw-a"}, {"gw-a": "", "gw-b": ""}, seen, frozenset("m"))


TARGETS: Final = (
    Target("dbp", "commands of DBP, with registrations and listings", _command, _command_seeds, whole=True),
    Target(
        "dbp-datagram",
        "beats of DBP over UDP",
        _beat,
        lambda: [wire.pack_datagram(word, "Rohan é", 1.5) for word in (wire.HEARTBEAT, wire.DISCONNECT)],
        whole=True,
    ),
    Target("dbp-request", "requests of nodes, and frames of a mirror", _request, _request_seeds, whole=True),
    Target("beacon", "beacons", _beacon, _beacon_seeds, whole=True),
    Target(
        "offer",
        "what a proxy offers",
        _offer,
        lambda: [json.dumps({"Rohan": {"interfaces": ["router"], "via": ["a"], "x": 1}}).encode()],
        whole=True,
    ),
    Target(
        "note",
        "what another gateway says of itself",
        _note,
        lambda: [json.dumps(_NOTE | {"health": {"word": "ok", "line": "ok"}}).encode()],
        verdicts=(ValueError,),
        whole=True,
    ),
    Target("codec", "the data of frames as values of syndication", _coded, _coded_seeds, whole=True),
)
