"""What `check` passes can be built: topologies made from the schema itself, nearly right in every part."""

import json
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin

from hypothesis import HealthCheck, given
from hypothesis import settings as limits
from hypothesis import strategies as st

from bridges.media import MEDIA
from bus.schema import (
    ByGateway,
    Called,
    Check,
    KindOf,
    Length,
    Owned,
    Range,
    Record,
    Ref,
    Setting,
    alternatives,
    settings,
    unwrap,
)
from bus.urls import check_listen
from tests.helpers.appliances import appliance_of
from topologies.checks.checker import check
from topologies.findings import InvalidTopology
from topologies.loading.loader import loads
from topologies.model import Topology

NAMES = {
    "gateways": ["a", "b", "c"],
    "brokers": ["m", "n"],
    "buses": ["p", "q", "r"],
    "bridges": ["x", "y"],
    "devices": ["t"],
}
HOSTS = ["127.0.0.1", "10.0.0.1", "10.0.0.2", "0.0.0.0", "localhost"]
URLS = [f"tcp://{host}:{port}" for host in HOSTS for port in range(5001, 5020)]
URLS += ["ipc:///tmp/x", "inproc://x", "ws://127.0.0.1:5004/x", "wss://10.0.0.1:5005/y", "tcp://[::1]:5007"]
TEXTS = {
    "address": ["127.0.0.1", "10.0.0.1", "10.0.0.2", "localhost", "fd00::1"],
    "url": URLS,
    "port": ["/dev/x", "/dev/y", "socket://localhost:5006", "hwgrep://x"],
    "host": HOSTS,
    "group": ["239.0.0.1", "ff15::1", "10.0.0.1"],
    "channel": ["can0", "239.0.0.2"],
    "interface": ["lo", "virtual", "udp_multicast", "socketcan", "wpan0"],
    "alert": ["/dev/gpiochip0:1", "x"],
    "server_name": ["localhost"],
}
"""Texts for the keys whose check asks for more than any word."""


def scalar(key: str, bare: Any, markers: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    bounds = next((m for m in markers if isinstance(m, Range)), Range(0, 100))
    if bare is bool:
        return st.booleans()
    if key in ("queue_bytes", "message_bytes"):
        return st.sampled_from([1 << 20, 1 << 24])
    if bare is int:
        return st.integers(int(bounds.low), int(bounds.high))
    if bare is float:
        return st.floats(bounds.low, bounds.high)
    assert bare is str, f"{key}: teach this test how to draw {bare}"
    if any(isinstance(m, Check) and m.function is check_listen for m in markers):
        return st.sampled_from(URLS)
    return st.sampled_from(TEXTS.get(key, ["x", "y"]))


def value(key: str, annotation: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for the value of a key, most often one that is right."""
    bare, markers = unwrap(annotation)
    if ref := next((m for m in markers if isinstance(m, Ref)), None):
        return st.sampled_from([name for section in ref.sections for name in NAMES[section]])
    if kind_of := next((m for m in markers if isinstance(m, KindOf)), None):
        kinds: list[Any] = [kind_of.kinds.find(kind) for kind in kind_of.kinds.ours()]
        return st.sampled_from(kinds).flatmap(record)
    if called := next((m for m in markers if isinstance(m, Called)), None):
        return st.sampled_from(called.kinds.ours()).flatmap(lambda name: named(name, called.kinds.find(name)))
    if isinstance(bare, type) and issubclass(bare, Record):
        return record(bare)
    origin, arguments = get_origin(bare), get_args(bare)
    if origin in (Union, types.UnionType):
        return st.one_of(*(value(key, one) for one in arguments if one is not type(None)))
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (ByGateway, Owned):
        return value(key, arguments[0])
    if origin is tuple:
        low = next((m.low for m in markers if isinstance(m, Length)), 0)
        return st.lists(value(key, arguments[0]), min_size=low, max_size=max(2, low), unique_by=repr)
    if origin is Mapping:
        names = NAMES.get(key, ["port"])
        return st.dictionaries(st.sampled_from(names), value(key, arguments[1]), max_size=3)
    return scalar(key, bare, markers)


def named(name: str, kind: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for a record that is called by its name."""
    return st.fixed_dictionaries({name: record(kind)})


@st.composite
def record(draw: st.DrawFn, cls: type[Record]) -> dict[str, Any]:
    """Draw a mapping of a record: all required keys, some others, and one of its alternatives."""

    def wanted(one: Setting) -> bool:
        return one.required or draw(st.integers(0, 4)) == 4

    known = settings(cls)
    choice = alternatives(cls)
    beside = choice[1].beside if choice else ()
    made = {k: draw(value(k, one.annotation)) for k, one in known.items() if k not in beside and wanted(one)}
    if choice:
        kind = draw(st.sampled_from([*beside * 4, *MEDIA.ours()]))
        medium: Any = MEDIA.find(kind)
        made[kind] = draw(value(kind, known[kind].annotation) if kind in beside else record(medium))
    return made


def entries(section: str) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for the entries of a section, each of which it may leave out."""
    annotation = settings(Topology)[section].annotation
    one = value(section, get_args(unwrap(annotation)[0])[1])
    return st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES[section], one))


@st.composite
def topology(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a topology with all gateways, and a bus on each; the rest as it comes."""
    made: dict[str, Any] = {"name": "t"} | {section: draw(entries(section)) for section in NAMES}
    for number, gateway in enumerate(NAMES["gateways"]):
        made["gateways"].setdefault(gateway, {"node": number + 1})
        bus = made["buses"].setdefault(NAMES["buses"][number], {})
        made["buses"][NAMES["buses"][number]] = bus | {"on": gateway}
    for tap in made["devices"].values():
        tap |= {"on": "a", "tap": "p"}
    for bridge in made["bridges"].values():
        for side in bridge["join"]:
            draw(differing(side, bridge["on"]))
    return made


@st.composite
def differing(draw: st.DrawFn, side: dict[str, Any], gateways: list[str]) -> None:
    """Give some values of a side by gateway. Each gateway may have a bus of its own."""
    own = dict(zip(NAMES["gateways"], NAMES["buses"], strict=True))
    for key, one in side.items():
        if draw(st.integers(0, 4)) == 4:
            side[key] = {name: own[name] if key == "bus" else one for name in gateways}


def test_what_check_passes_can_be_built() -> None:
    built = 0

    @limits(max_examples=150, suppress_health_check=list(HealthCheck))
    @given(topology())
    def build(made: dict[str, Any]) -> None:
        nonlocal built
        try:
            read = loads(json.dumps(made))
        except InvalidTopology:
            return
        if not any(finding.level == "error" for finding in check(read)):
            built += 1
            for gateway in read.gateways:
                appliance_of(read, gateway)

    build()
    assert built > 30
