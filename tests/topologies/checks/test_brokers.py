"""Sides that dial TMQ brokers: which brokers, what crosses, and the wires that brokers make."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import pytest

from bridges.media.medium import Medium
from bus.needs import Listening, Lookup, Need, Readable
from bus.transports.options import Tls
from bus.wire.pattern import Pattern
from tests.topologies.checks.broker_support import BROKERS, one, text
from tests.topologies.support import errors, findings, said, warnings
from topologies.checks.checker import check
from topologies.checks.needs import needs_of
from topologies.loading.loader import loads
from topologies.names import known
from topologies.resolved.resolve import resolve
from topologies.wiring.filters import passes
from topologies.wiring.reach import broker_url, brokers_of, lease_places, peer_urls, with_addresses
from topologies.wiring.segments import wired


def dialled(tmq: str, on: str = "a") -> tuple[str, ...] | None:
    medium = resolve(wired(loads(one(tmq, on=on))), "a").bridges["x"].sides[0].side.medium
    assert medium is not None
    return medium.tmq_brokers


# Brokers


@pytest.mark.parametrize(
    ("brokers", "urls"),
    [
        ("{}", ("tcp://10.0.0.1:9942", "tcp://10.0.0.2:9943")),
        ("{subscribe: fridge}", ("tcp://10.0.0.1:9942", "tcp://10.0.0.2:9943")),
        ("{brokers: spare}", ("tcp://10.0.0.2:9943",)),
        ("{brokers: [spare, main]}", ("tcp://10.0.0.2:9943", "tcp://10.0.0.1:9942")),
        ("{brokers: tcp://gw-x:9942}", ("tcp://gw-x:9942",)),
        ("{brokers: ['tcp://10.0.0.9:9942', main]}", ("tcp://10.0.0.9:9942", "tcp://10.0.0.1:9942")),
    ],
)
def test_brokers_are_names_of_this_file_or_addresses_and_a_link_gets_addresses(
    brokers: str, urls: tuple[str, ...]
) -> None:
    assert dialled(brokers) == urls


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqtt(Medium):
    """A medium of another distribution, with brokers of its own kind."""

    key: ClassVar = "mqtt"
    brokers: Annotated[tuple[str, ...], "MQTT brokers"] = ("mqtt://h:1883",)


def test_brokers_of_other_protocols_are_left_alone() -> None:
    topology = loads(one("{}"))
    assert brokers_of(topology, Mqtt()) == ()
    assert with_addresses(topology, Mqtt()) == Mqtt()


def test_a_broker_that_listens_on_one_address_is_dialled_there() -> None:
    near = "brokers: {main: {on: a, listen: ['tcp://127.0.0.1:9942', 'tcp://*:9943']}}\n"
    topology = loads(text("on: a, join: [tmq: {}, uart: /dev/x]", brokers=near))
    medium = resolve(wired(topology), "a").bridges["x"].sides[0].side.medium
    assert medium is not None
    assert medium.tmq_brokers == ("tcp://127.0.0.1:9942",)


TLS = "tls: {cert_file: /c.pem, ca_file: /ca.pem, require_peer_cert: true}"
SECURE = f"{{url: 'tls+tcp://*:9945', {TLS}}}"


def secured(*more: str, bridge: str = "on: [a, b], join: [bus: p, uart: /dev/x]") -> str:
    """Return a topology of a broker on `a` with an address with TLS, and others, and one bridge."""
    listen = ", ".join((*more, SECURE))
    return text(bridge, brokers=f"brokers: {{main: {{on: a, listen: [{listen}]}}}}\n")


def test_bridges_dial_the_address_with_tls_and_clients_the_one_without() -> None:
    both = loads(secured("'tcp://*:9942'"))
    ((url, address),) = lease_places(both)
    assert url == "tls+tcp://10.0.0.1:9945"
    assert address.tls_of("b") == Tls(ca_file="/ca.pem", cert_file="/c.pem", require_peer_cert=True)
    assert broker_url(both, both.brokers["main"]) == "tcp://10.0.0.1:9942"
    only = loads(secured())
    assert broker_url(only, only.brokers["main"]) is None
    assert Readable("/c.pem") in [need for _, need in needs_of(wired(both), "b")]


def test_a_broker_with_tls_at_all_its_addresses_has_no_clients() -> None:
    assert errors(secured()) == []
    (told,) = errors(secured(bridge="on: a, join: [tmq: {}, bus: p]"))
    assert "tmq has no broker without TLS" in told
    (told,) = errors(secured(bridge="on: a, join: [tmq: {brokers: main}, bus: p]"))
    assert told.startswith("broker main has TLS at all its addresses, and its clients know none: ")


def test_a_broker_with_tls_at_all_its_addresses_shares_nothing() -> None:
    plain, secure = "'tcp://*:9942'", SECURE
    brokers = f"brokers: {{m: {{on: a, listen: {plain}}}, n: {{on: b, listen: {secure}}}}}\n"
    both = loads(text("on: a, join: [bus: p, uart: /dev/x]", brokers=brokers))
    assert peer_urls(both, "m") == peer_urls(both, "n") == []


def test_a_plain_address_on_loopback_does_not_matter_to_bridges_elsewhere() -> None:
    assert errors(secured("'tcp://127.0.0.1:9942'")) == []
    tmq = secured("'tcp://127.0.0.1:9942'", bridge="on: b, join: [tmq: {}, uart: /dev/x]")
    assert errors(tmq) == ["broker main listens on 127.0.0.1, which b cannot reach"]


@pytest.mark.parametrize(
    ("listen", "words"),
    [
        ("'tls+tcp://*:9945'", "listening with TLS needs tls: {cert_file: ...}"),
        ("{url: 'tls+tcp://*:9945', tls: {ca_file: c}}", "listening with TLS needs tls: {cert_file: ...}"),
        ("{url: 'tcp://*:9945', tls: {cert_file: c}}", "tls is for tls+tcp://"),
        ("{url: 'tls+tcp://*:0', tls: {cert_file: c}}", "not 0"),
        ("{url: 'wss://*:9945', tls: {cert_file: c}}", "a broker listens on"),
        ("{url: 'tls+tcp://[::]:9945', tls: {cert_file: c}}", "a broker listens on"),
    ],
)
def test_wrong_words_about_tls_are_told(listen: str, words: str) -> None:
    brokers = f"brokers: {{main: {{on: a, listen: {listen}}}}}\n"
    (found,) = findings(text("on: a, join: [bus: p, uart: /dev/x]", brokers=brokers))
    assert words in found.text


def test_each_gateway_may_have_brokers_of_its_own() -> None:
    topology = loads(one("{brokers: {a: main, b: [spare, main]}, publish: []}", on="[a, b]"))
    media = [resolve(wired(topology), gateway).bridges["x"].sides[0].side.medium for gateway in "ab"]
    assert [medium and medium.tmq_brokers for medium in media] == [
        ("tcp://10.0.0.1:9942",),
        ("tcp://10.0.0.2:9943", "tcp://10.0.0.1:9942"),
    ]
    whole = loads(one("{a: {brokers: main}, b: {brokers: spare}}", on="[a, b]"))
    medium = whole.bridges["x"].at("b")[0].medium
    assert medium is not None
    assert medium.tmq_brokers == ("spare",)


@pytest.mark.parametrize(
    ("brokers", "words"),
    [
        ("mian", 'no broker "mian"; did you mean "main"?'),
        ("[main, p]", 'no broker "p"'),
        ("gw-a:9942", 'no broker "gw-a:9942"; an address is written tcp://HOST:PORT'),
        ("gw-a", 'no broker "gw-a"; known here: main, spare'),
        ("[]", "0 given; it takes 1 to 64"),
        ("5", "expected text"),
        ("tcp://gw-a", "has no port"),
        ("ws://gw-a:9942/x", "a broker listens on tcp://HOST:PORT"),
        ("'tcp://[::1]:9942'", "a broker listens on tcp://HOST:PORT"),
        ("tcp://gw-a:0", "not 0"),
        ("'tcp://*:9942'", "not dialled"),
        ("tcp://0.0.0.0:9942", "not dialled"),
        ("{a: main}", "no value for b"),
    ],
)
def test_a_wrong_broker_has_its_place_and_a_hint(brokers: str, words: str) -> None:
    (found,) = findings(one(f"{{brokers: {brokers}}}", on="[a, b]"))
    assert words in found.text
    assert (found.line, found.path.startswith("bridges.x.join[0].tmq.brokers")) == (8, True)


def test_without_a_broker_in_the_file_an_address_is_needed() -> None:
    bridge = "on: a, join: [{tmq: %s}, uart: /dev/x]"
    (found,) = check(loads(text(bridge % "{}", brokers=""), "t.yaml"))
    assert found.text == (
        "tmq has no broker: add one to this file (brokers:), or write an address here "
        "(brokers: tcp://HOST:PORT)"
    )
    assert (found.level, found.line, found.path) == ("error", 7, "bridges.x.join[0].tmq")
    assert errors(text(bridge % "{brokers: tcp://10.0.0.9:1}", brokers="")) == []
    assert "; an address is written" in said(text(bridge % "{brokers: main}", brokers=""))


def test_a_broker_on_loopback_of_another_machine_is_out_of_reach() -> None:
    brokers = (
        "brokers: {main: {on: a, listen: 'tcp://127.0.0.1:9942'}, other: {on: a, listen: 'tcp://*:9943'}}\n"
    )
    bridge = "on: %s, join: [{tmq: {brokers: %s}}, uart: /dev/x]"
    at_b = "broker main listens on 127.0.0.1, which b cannot reach"
    assert errors(text(bridge % ("b", "main"), brokers=brokers)) == [at_b]
    assert errors(text(bridge % ("b", "other"), brokers=brokers)) == []
    assert errors(text(bridge % ("a", "main"), brokers=brokers)) == []
    assert errors(text("on: b, join: [tmq: {}, uart: /dev/x]", brokers=brokers)) == [at_b]


def test_a_gateway_whose_brokers_are_dialled_has_an_address_of_its_own() -> None:
    near = "name: t\ngateways: {a: {}, b: {address: 10.0.0.2}}\n"
    brokers = "brokers: {main: {on: a, listen: 'tcp://*:9942'}}\n"
    found = warnings(text("on: b, join: [tmq: {}, uart: /dev/x]", head=near, brokers=brokers))
    assert found == ["b cannot reach a at 127.0.0.1: give a the address of its machine"]


def test_needs_are_names_to_look_up_and_a_free_port() -> None:
    head = "name: t\ngateways: {a: {address: gw-a.plant}, b: {address: 10.0.0.2}}\n"
    bridge = "on: a, join: [tmq: {brokers: [main, 'tcp://b.plant:1', 'tcp://10.0.0.9:1'], %s}, uart: /dev/x]"

    def found(more: str) -> list[Need]:
        topology = loads(text(bridge % more, head=head, brokers=BROKERS.split(", spare")[0] + "}\n"))
        sides = topology.bridges["x"].at("a")
        return [need for where, need in needs_of(wired(topology), "a") if where == sides[0].medium.where]  # type: ignore[union-attr]

    names = [Lookup("gw-a.plant", ipv4=True), Lookup("b.plant", ipv4=True)]
    assert found("port: 9950") == [*names, Listening("*", 9950)]
    assert found("port: 9950, host: 127.0.0.1") == [*names, Listening("127.0.0.1", 9950)]
    assert found("port: 0") == names


def test_a_fixed_port_is_taken_by_one() -> None:
    same = "on: a, join: [{tmq: {port: 9942%s}}, uart: /dev/x]"
    (found,) = errors(text(same % ""))
    assert found == "TCP port 9942 is taken by broker main already (line 3)"
    assert errors(text(same.replace("on: a", "on: b") % "")) == []
    (found,) = errors(text(same.replace("9942", "9950") % ", host: 10.0.0.2"))
    assert "10.0.0.2 is the address of gateway b" in found


# What crosses


FRAMES = {"fridge/temp": ("fridge", "temp"), "fridge": ("fridge",), "alert": ("alert",), "/": ()}


@pytest.mark.parametrize(
    ("tmq", "deny", "inward", "outward"),
    [
        ("{}", "", "fridge/temp fridge alert /", "fridge/temp fridge alert /"),
        ("{subscribe: [fridge]}", "", "fridge/temp fridge", "fridge/temp fridge alert /"),
        ("{subscribe: [[fridge]], publish: [alert]}", "", "fridge/temp fridge", "alert"),
        ("{subscribe: fridge/temp, publish: []}", "", "fridge/temp", ""),
        ("{subscribe: [], publish: /}", "", "", "fridge/temp fridge alert /"),
        ("{subscribe: [fridge/temp, alert]}", "alert", "fridge/temp", "fridge/temp fridge /"),
        ("{subscribe: [fridge]}", "{in: fridge/temp, out: /}", "fridge", ""),
        ("{subscribe: [], publish: []}", "{out: alert}", "", ""),
    ],
)
def test_subscribe_and_publish_say_what_crosses(tmq: str, deny: str, inward: str, outward: str) -> None:
    spec = loads(one(tmq, f", deny: {deny}" if deny else "")).bridges["x"]

    def crossing(inward: bool) -> list[str]:
        frames = {word: tuple(Pattern(*names)) for word, names in FRAMES.items()}
        return [word for word, frame in frames.items() if passes(spec, spec.at("a")[0], frame, inward)]

    assert (crossing(True), crossing(False)) == (inward.split(), outward.split())


@pytest.mark.parametrize(
    ("tmq", "words"),
    [
        ("{subscribe: '#'}", "# is no wildcard here"),
        ("{subscribe: fridge/#}", "# is no wildcard here"),
        ("{publish: [fridge, +/temp]}", "+ is no wildcard here"),
        ("{publish: [[fridge, +]]}", "+ is no wildcard here"),
        ("{subscribe: [[fridge/temp]]}", "write fridge/temp in place"),
        ("{subscribe: fridge//temp}", "a part between slashes is empty"),
        ("{subscribe: }", "expected a list, found nothing (# begins a comment)"),
        ("{subscribe: {in: fridge}}", "found a mapping"),
        ("{host: 10.0.0.311}", "is no host"),
        ("{host: '::1'}", "TMQ knows only IPv4 addresses"),
        ("{subscribed: fridge}", 'unknown key "subscribed"; did you mean "subscribe"?'),
    ],
)
def test_wrong_settings_have_a_hint(tmq: str, words: str) -> None:
    (found,) = findings(one(tmq))
    assert words in found.text
    assert (found.line, found.path.split(".")[3:4]) == (8, ["tmq"])


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            ", allow: fridge",
            "subscribe and publish of tmq say what crosses here: leave pattern and allow out",
        ),
        (", allow: {in: [fridge]}", "leave pattern and allow out"),
        (", pattern: fridge", "leave pattern and allow out"),
        (", trunk: true", "tmq carries no envelopes, so this side cannot be a trunk: leave trunk out"),
    ],
)
def test_words_of_a_side_that_do_not_go_with_the_medium(more: str, words: str) -> None:
    (found,) = findings(one("{}", more))
    assert words in found.text
    assert (found.line, found.column, found.path) == (8, 21, "bridges.x.join[0]")
    assert findings(one("{}", ", trunk: false, deny: fridge, shed: oldest, segment: net")) == []


def test_patterns_that_the_bridge_does_not_carry_match_nothing() -> None:
    bridge = "on: a, pattern: fridge, join: [{tmq: %s}, uart: /dev/x]"
    found = warnings(text(bridge % "{subscribe: fridge/temp, publish: [alert]}"))
    assert found == ["alert matches nothing here: the bridge carries fridge only"]
    assert warnings(text(bridge % "{publish: []}")) == warnings(text(bridge % "{subscribe: /}")) == []


def test_names_of_patterns_are_known() -> None:
    assert {"fridge", "door", "alert"} <= {*known(loads(one("{subscribe: [fridge/door], publish: alert}")))}


def test_events_of_gateways_leave_only_where_publish_names_them() -> None:
    bridge = "on: a, join: [bus: p, {tmq: %s}]"

    def keeps(tmq: str) -> bool:
        topology = loads(text(bridge % tmq) + "events: p\n")
        return resolve(wired(topology), "a").bridges["x"].sides[1].keeps != ()

    assert keeps("{}")
    assert keeps("{publish: /}")
    assert not keeps("{publish: [alert]}")
    assert not keeps("{publish: [alert, buscoupler/event]}")
