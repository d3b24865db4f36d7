"""Journals of durable trunks: for whom they are kept, and what cannot be."""

import pytest

from tests.topologies.support import PAIR, errors, said
from topologies.checks.checker import check
from topologies.loading.loader import loads
from topologies.resolved.buses import Buses
from topologies.resolved.ground import Ground
from topologies.wiring.durable import keepings
from topologies.wiring.segments import wired

JOINED = PAIR + (
    "buses:\n"
    "  p: {on: a, listen: [tcp://0.0.0.0:4, {url: 'tcp://0.0.0.0:5', trunk: true%s}]}\n"
    "  q: {on: b, listen: tcp://0.0.0.0:6, trunks: %s}\n"
)
KEPT = "{bus: p, durable: /j}"


def test_an_end_is_found_in_the_file() -> None:
    topology = loads(JOINED % (", durable: /k", KEPT))
    assert [(one.mode, one.gateways) for one in keepings(topology, "p")] == [("listen", ("b",))]
    assert [(one.mode, one.gateways) for one in keepings(topology, "q")] == [("dial", ("a",))]
    assert errors(JOINED % (", durable: /k", KEPT)) == []


def test_the_record_of_a_bus_has_its_journal_and_each_address_what_it_keeps() -> None:
    topology = loads(JOINED % (", durable: {directory: /k, pattern: temp, for: [b, far]}", KEPT))
    found = Buses(Ground(wired(topology), "a", frozenset(), ())).resolved("p")
    assert found.journal is not None
    assert (found.journal.durable.directory, found.journal.gateways) == ("/k", ("b", "far"))
    plain, trunk = (end.at for end in found.links)
    assert (plain.journal, plain.keeps_for) == (None, ())
    assert (trunk.journal, trunk.keeps_for, trunk.kept) == (found.journal, ("b", "far"), (("temp",),))


@pytest.mark.parametrize(
    ("listen", "trunks", "words"),
    [
        ("", "{bus: p, durable: {directory: /j, for: a, bytes: 5}}", ""),
        (
            ", durable: {directory: /k, for: b}}, {url: 'tcp://0.0.0.0:9', trunk: true, "
            "durable: {directory: /k, for: far}",
            KEPT,
            "",
        ),
        (", durable: /k}, {url: 'tcp://0.0.0.0:9', trunk: true, durable: /l", KEPT, "a bus has one journal"),
        (
            ", durable: /k}, {url: 'tcp://0.0.0.0:9', trunk: true, durable: /k",
            KEPT,
            "name its gateways in `for`",
        ),
        (
            ", durable: /k}, {url: 'tcp://0.0.0.0:9', trunk: true, durable: {directory: /k, for: b}",
            KEPT,
            "keeps for gateway b at two of its addresses",
        ),
    ],
)
def test_what_cannot_be_kept_is_told(listen: str, trunks: str, words: str) -> None:
    found = errors(JOINED % (listen, trunks))
    assert any(words in text for text in found) == bool(words)


@pytest.mark.parametrize(
    ("listen", "words"),
    [
        ("}, {url: 'tcp://0.0.0.0:9', durable: /k", "write trunk: true"),
        ("}, {url: 'inproc://x', trunk: true, durable: /k", "inproc"),
        (", durable: /k, peers: [{address: 10.0.0.0/8, send: temp}]", "give durable a pattern instead"),
    ],
)
def test_an_address_where_nobody_acknowledges_keeps_nothing(listen: str, words: str) -> None:
    assert words in said(JOINED % (listen, KEPT))


def test_two_buses_do_not_share_a_directory() -> None:
    text = (
        JOINED % ("", KEPT)
        + "  r: {on: b, dial: {url: 'tcp://10.0.0.1:5', trunk: true, durable: {directory: /j/., for: a}}}\n"
    )
    assert any("bus q has its journal in /j/. already" in one for one in errors(text))


def test_it_is_said_what_an_acknowledgement_is_worth() -> None:
    without, with_one = (
        [one.text for one in check(loads(JOINED % (durable, KEPT)))] for durable in ("", ", durable: /k")
    )
    assert any("gateway a keeps no journal" in text for text in without)
    assert not any("keeps no journal" in text for text in with_one)


def test_a_side_may_take_what_is_late() -> None:
    bridge = "bridges: {x: {on: a, join: [{bus: p%s}, {uart: {port: /dev/x, baud: 9600}, late: true}]}}\n"
    text = JOINED % ("", "p") + bridge
    assert errors(text % "") == []
    assert "late has no effect" in said(text % ", late: true")


def test_where_a_journal_is_for_whom_and_how_that_acknowledges_is_told() -> None:
    told = [one.text for one in check(loads(JOINED % (", durable: {directory: /k, for: [b, far]}", KEPT)))]
    assert "bus p keeps for b (acknowledges after its fdatasync), far in /k" in told
    assert "bus q keeps for a (acknowledges after its fdatasync) in /j" in told
    told = [one.text for one in check(loads(JOINED % ("", KEPT)))]
    assert "bus q keeps for a (acknowledges after delivery) in /j" in told
