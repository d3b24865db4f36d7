"""Certificates by gateway: wherever `tls` may stand, for whoever listens there and for whoever dials."""

from typing import Any, get_args

import pytest
from jsonschema import Draft7Validator
from yaml import safe_load

from bus.needs import Readable
from bus.schema import ByGateway, Called, KindOf, Owned, Record, alternatives, members, settings, unwrap
from bus.transports.options import Tls
from tests.topologies.support import PAIR, errors, findings
from topologies.checks.needs import needs_of
from topologies.loading.loader import loads
from topologies.model import Topology
from topologies.resolved.resolve import resolve
from topologies.wiring.segments import wired
from topologies.writing.schema import schema

A, B = "a: {ca_file: ca.pem, cert_file: a.pem}", "b: {ca_file: ca.pem, cert_file: b.pem}"
LISTEN = PAIR + (
    "buses:\n"
    "  p: {on: a, listen: {url: 'tls+tcp://10.0.0.1:5', trunk: true, tls: {%s}}}\n"
    "  q: {on: b, trunks: p}\n"
)
SIDE = PAIR + (
    "buses: {p: {on: a, listen: {url: 'tls+tcp://10.0.0.1:5', tls: {%s}}}}\n"
    "bridges: {m: {on: b, join: [{bus: p}, {can: can0}]}}\n"
)
DIAL = PAIR + (
    "buses:\n"
    "  p: {on: a, listen: {url: 'tls+tcp://10.0.0.1:5', trunk: true, tls: {cert_file: a.pem}}}\n"
    "  q: {on: b, dial: {url: 'tls+tcp://10.0.0.1:5', trunk: true, tls: {%s}}}\n"
)
BROKER = PAIR + (
    "brokers: {x: {on: a, listen: {url: 'tls+tcp://10.0.0.1:6', tls: {%s}}}}\n"
    "buses: {p: {on: a, listen: {url: 'tcp://10.0.0.1:5', trunk: true}}}\n"
    "bridges: {m: {on: [a, b], join: [{bus: p}, {can: can0}]}}\n"
)
TEXTS = {"listen": LISTEN, "side": SIDE, "dial": DIAL, "broker": BROKER}


def owners(cls: type[Record], seen: dict[type[Record], Any]) -> dict[type[Record], Any]:
    """Return all records below one that have `tls`, with the type of that."""
    for one in settings(cls).values():
        _reach(one.annotation, seen)
    choice = alternatives(cls)
    for name in choice[1].kinds.ours() if choice else ():
        _reach(choice[1].kinds.find(name) if choice else None, seen)
    return seen


def _reach(annotation: Any, seen: dict[type[Record], Any]) -> None:
    bare, markers = unwrap(annotation)
    kinds = [kind.kinds for kind in markers if isinstance(kind, KindOf | Called)]
    found = [table.find(name) for table in kinds for name in table.ours()] or [bare]
    for cls in found:
        if isinstance(cls, type) and issubclass(cls, Record) and cls not in seen:
            known = settings(cls)
            seen[cls] = known["tls"].annotation if "tls" in known else None
            owners(cls, seen)
    for inner in get_args(bare):
        if inner is not ...:
            _reach(inner, seen)


def test_tls_is_by_gateway_or_of_one_gateway_wherever_it_may_stand() -> None:
    found = {cls.__name__: one for cls, one in owners(Topology, {}).items() if one is not None}
    by_gateway = {
        name for name, one in found.items() if Owned[Tls] in members(unwrap(one)[0])
    }  # fmt: skip
    assert by_gateway == {"Listen", "Dial", "BrokerAddress"}
    assert found.keys() - by_gateway == {
        "StatusSpec",  # of one gateway
        "Sp",  # of a side, each of whose values may be given by gateway
        "ProxySpec",  # of a device, which one gateway runs
    }
    assert ByGateway in {getattr(one, "__origin__", None) for one in get_args(_sides())}


def _sides() -> Any:
    from topologies.model import BridgeSpec

    return unwrap(settings(BridgeSpec)["join"].annotation)[0]


@pytest.mark.parametrize("place", TEXTS)
def test_each_gateway_gets_its_own(place: str) -> None:
    text = TEXTS[place] % f"{A}, {B}"
    assert errors(text) == []
    Draft7Validator(schema()).validate(safe_load(text.replace("on: ", "'on': ")))
    topology = loads(text, "t.yaml")
    for name in topology.gateways:
        needs = [need for _, need in needs_of(wired(topology), name)]
        paths = {need.path.rpartition("/")[2] for need in needs if isinstance(need, Readable)}
        assert paths & {"a.pem", "b.pem"} == {f"{name}.pem"}


def test_the_records_of_links_have_those_of_their_gateway() -> None:
    topology = wired(loads(LISTEN % f"{A}, {B}", "t.yaml"))
    (listens,), (dials,) = resolve(topology, "a").buses["p"].links, resolve(topology, "b").buses["q"].links
    assert [str(one.at.tls and one.at.tls.cert_file)[-5:] for one in (listens, dials)] == ["a.pem", "b.pem"]
    (side, _) = resolve(wired(loads(SIDE % f"{A}, {B}", "t.yaml")), "b").bridges["m"].sides
    assert side.bus is not None
    assert side.bus.dial is not None
    assert str(side.bus.dial.tls and side.bus.dial.tls.cert_file).endswith("b.pem")
    claims = resolve(wired(loads(BROKER % f"{A}, {B}", "t.yaml")), "b").bridges["m"].candidate
    assert claims is not None
    assert str(claims.tls[0][1].cert_file).endswith("b.pem")


@pytest.mark.parametrize(("place", "lacks"), [("listen", "b"), ("side", "b"), ("dial", "b"), ("broker", "b")])
def test_who_dials_and_has_none_is_an_error(place: str, lacks: str) -> None:
    text = TEXTS[place] % A
    port = 6 if place == "broker" else 5
    assert errors(text) == [f"tls has no value for {lacks}, which dials tls+tcp://10.0.0.1:{port}"]


@pytest.mark.parametrize("place", ["listen", "side", "broker"])
def test_who_listens_needs_a_certificate_among_them(place: str) -> None:
    (found,) = findings(TEXTS[place] % B)
    assert found.text.startswith("tls has no value for a, which listens at tls+tcp://")
    (found,) = findings(TEXTS[place] % f"a: {{ca_file: ca.pem}}, {B}")
    assert found.text == "listening with TLS needs tls: {cert_file: ...} for a"


def test_an_unknown_gateway_is_an_error_and_so_are_names_of_peers_without_certificates() -> None:
    (found,) = findings(LISTEN % f"{A}, {B}, c: {{}}")
    assert found.text.startswith('no gateway "c"')
    peers = (LISTEN % f"{A}, {B}").replace("trunk: true, tls", "trunk: true, peers: [{name: x}], tls")
    (found,) = findings(peers)
    assert "peers by name need certificates" in found.text
    asked = peers.replace("cert_file: a.pem", "cert_file: a.pem, require_peer_cert: true")
    assert findings(asked) == []
