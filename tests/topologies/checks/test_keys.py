"""Keys of a topology: which are in force where, those that have no effect, and ends that do not agree."""

import re

import pytest

from bus.needs import KeyFile
from tests.topologies.support import PAIR, errors, said, warnings
from topologies.checks.checker import check
from topologies.checks.exposure import find_exposed
from topologies.checks.needs import needs_of
from topologies.loading.loader import loads
from topologies.wiring.keys import keys_at, keys_of
from topologies.wiring.reach import dials_of
from topologies.wiring.segments import wired

TRUNKS = PAIR + (
    "%s\n"
    "buses:\n"
    "  p: {on: a, listen: [tcp://0.0.0.0:4, {url: 'tcp://0.0.0.0:5', trunk: true%s}]}\n"
    "  q: {on: b, dial: {url: 'tcp://10.0.0.1:5', trunk: true%s}}\n"
)


def test_the_keys_of_the_file_are_for_all_its_trunks_and_an_address_may_have_others() -> None:
    topology = loads(TRUNKS % ("keys: [new, old]", "", ", keys: other"))
    plain, trunk = topology.buses["p"].listen
    assert keys_of(topology, plain) == ()
    assert keys_of(topology, trunk) == ("new", "old")
    assert keys_of(topology, topology.buses["q"].dial[0]) == ("other",)
    unsigned = loads(TRUNKS % ("keys: main", ", keys: []", ", keys: []"))
    assert keys_of(unsigned, unsigned.buses["p"].listen[1]) == ()


def test_a_trunk_that_joins_two_buses_of_the_file_has_the_keys_of_where_it_listens() -> None:
    text = (TRUNKS % ("keys: main", ", keys: own", "")).replace(
        "dial: {url: 'tcp://10.0.0.1:5', trunk: true}", "trunks: p"
    )
    topology = loads(text)
    (dial,) = dials_of(topology, "q")
    assert keys_of(topology, dial) == ("own",)
    assert errors(text) == []


@pytest.mark.parametrize(
    ("keys", "here", "there"),
    [
        ("", ", keys: a", ""),
        ("keys: a", "", ", keys: []"),
        ("keys: a", "", ", keys: b"),
        ("keys: [a, b]", "", ", keys: [c, a]"),
        ("keys: [a, b]", ", keys: [c, a]", ""),
    ],
)
def test_ends_of_a_trunk_that_do_not_know_each_other_s_key_are_an_error(
    keys: str, here: str, there: str
) -> None:
    (found,) = errors(TRUNKS % (keys, here, there))
    assert "give both ends the same keys" in found


@pytest.mark.parametrize(
    ("keys", "here", "there"), [("keys: [a, b]", "", ", keys: [b, a]"), ("", "", ""), ("keys: a", "", "")]
)
def test_ends_that_know_each_other_s_key_are_none(keys: str, here: str, there: str) -> None:
    text = TRUNKS % (keys, here, there)
    assert errors(text) == warnings(text) == []


def test_a_plain_end_of_a_signed_trunk_is_an_error() -> None:
    text = (TRUNKS % ("keys: a", "", "")).replace(":5', trunk: true}}", ":5'}}")
    assert ["signs with no key here, and bus p with a" in one for one in errors(text)] == [True]


def test_keys_that_sign_nothing_are_told() -> None:
    text = PAIR + "keys: a\nbuses: {p: {on: a, listen: 'tcp://0.0.0.0:4'}, q: {on: b}}\n"
    assert ["keys have no effect" in one for one in warnings(text)] == [True]
    brokers = text + "brokers: {m: {on: a, listen: 'tcp://0.0.0.0:9'}}\n"
    assert not any("keys have no effect" in one for one in warnings(brokers))


@pytest.mark.parametrize(
    "address",
    [
        "{url: 'tcp://0.0.0.0:5', keys: a}",
        "{url: 'tcp://0.0.0.0:5', keys: []}",
        "{url: 'inproc://x', trunk: true, keys: a}",
    ],
)
def test_keys_where_nothing_is_signed_are_an_error(address: str) -> None:
    text = PAIR + f"buses: {{p: {{on: a, listen: {address}}}, q: {{on: b}}}}\n"
    assert "keys have no effect here" in said(text)


SIDE = PAIR + "%s\nbuses: {p: {on: a}, q: {on: b}}\nbridges: {x: {on: a, join: [{bus: p}, {%s}]}}\n"


def test_a_side_that_is_a_trunk_has_the_keys_of_the_file_or_its_own() -> None:
    url = "url: 'tcp://192.0.2.1:5', trunk: true"
    for words, keys in ((url, ("a",)), (f"{url}, keys: b", ("b",)), (f"{url}, keys: []", ())):
        topology = loads(SIDE % ("keys: a", words))
        joint = wired(topology).joints[1]
        assert keys_at(topology, joint.side, joint.trunk) == keys
        needs = [need for _, need in needs_of(wired(topology), "a")]
        assert [need.path for need in needs if isinstance(need, KeyFile)] == list(keys)


@pytest.mark.parametrize(
    ("words", "idle"), [("trunk: true", 0), ("trunk: true, keys: b", 1), ("trunk: false", 1)]
)
def test_the_keys_of_the_file_have_an_effect_on_a_side_without_its_own(words: str, idle: int) -> None:
    found = warnings(SIDE % ("keys: a", f"url: 'tcp://192.0.2.1:5', {words}"))
    assert sum("keys have no effect" in one for one in found) == idle


ON_TRUNKS = """\
keys: k
buses:
  p: {on: a, listen: {url: 'tcp://0.0.0.0:5', trunk: true}}
  q: {on: %s, listen: {url: 'tcp://0.0.0.0:6', trunk: true}}
bridges: {x: {on: a, join: [{bus: p}, {bus: q}]}}
"""


@pytest.mark.parametrize(
    ("other", "places"),
    [("b", ["buses.p.listen", "bridges.x.join[1]"]), ("a", ["buses.p.listen", "buses.q.listen"])],
)
def test_a_side_needs_keys_for_a_bus_that_it_dials_and_none_on_its_own_gateway(
    other: str, places: list[str]
) -> None:
    needs = needs_of(wired(loads(PAIR + ON_TRUNKS % other)), "a")
    assert [where.path for where, need in needs if isinstance(need, KeyFile)] == places


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("url: 'tcp://192.0.2.1:5', keys: b", "only a trunk is signed"),
        ("bus: q, keys: b", "give the keys to these"),
        ("i2c: {bus: 1, targets: [8]}, trunk: true, keys: b", "nothing is signed on i2c"),
    ],
)
def test_keys_of_a_side_that_does_not_sign_are_an_error(words: str, why: str) -> None:
    assert why in said(SIDE % ("", words))


def test_a_trunk_on_a_medium_that_does_not_sign_is_told() -> None:
    found = warnings(SIDE % ("keys: a", "i2c: {bus: 1, targets: [8]}, trunk: true"))
    assert any("nothing is signed on i2c" in one for one in found)


WIRE = (
    PAIR
    + """keys: a
buses: {p: {on: a}, q: {on: b}}
bridges:
  x: {on: a, join: [{bus: p}, {can: {channel: can0, bitrate: 500000}, segment: w, trunk: true}], rates: [%s]}
  y: {on: b, join: [{bus: q}, {can: can0, segment: w, trunk: true%s}]}
"""
)


@pytest.mark.parametrize(("own", "wrong"), [("", False), (", keys: [b, a]", True), (", keys: []", True)])
def test_all_on_one_wire_have_keys_that_agree(own: str, wrong: bool) -> None:
    assert ["give all on segment w the same keys" in one for one in errors(WIRE % ("", own))] == [
        True
    ] * wrong


def test_clocks_are_asked_for_where_nothing_else_keeps_old_messages_out() -> None:
    notes = [finding.text for finding in check(loads(WIRE % ("", "")))]
    assert len([text for text in notes if "clocks differ by less than 60 s" in text]) == 2
    assert not any("clocks" in finding.text for finding in check(loads(TRUNKS % ("keys: a", "", ""))))


def test_the_budget_of_a_wire_counts_what_signing_adds() -> None:
    rate = "{pattern: [a], frames_per_s: 300, data_bytes: 12}"
    signed, unsigned = WIRE % (rate, ""), (WIRE % (rate, "")).replace("keys: a\n", "")
    shares = [
        int(found[1])
        for text in (signed, unsigned)
        for finding in check(loads(text))
        if (found := re.search(r"promised (\d+)%", finding.text))
    ]
    assert shares == [74]


def test_a_trunk_with_keys_lets_in_nobody_else_so_its_address_may_be_open() -> None:
    exposed = [
        finding.text
        for keys in ("keys: a", "")
        for finding in find_exposed(wired(loads(TRUNKS % (keys, "", ""))))
        if ":5 is let in" in finding.text
    ]
    assert [text.count("or give the trunk keys") for text in exposed] == [1]
