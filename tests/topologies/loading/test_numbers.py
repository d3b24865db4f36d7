"""Numbers are what they look like, at every key of the schema that takes one, or an error."""

from collections.abc import Iterator
from typing import Any, get_args, get_origin

import pytest

from bus.schema import ByGateway, KindOf, Record, alternatives, members, present, settings, unwrap
from topologies.findings import InvalidTopology
from topologies.loading.loader import loads
from topologies.loading.numbers import unclear
from topologies.model import Topology

Place = tuple[str, str, frozenset[type]]
"""The text before and behind a value in YAML, and the types that the value may have."""

ODD = {
    "0115200": "write 115200", "010": "write 10", "08": "write 8", "12:30": "write the plain number",
    "1_000": "write 1000", "0o17": "write 15", "0b11": "write 3", "+5": "write 5", ".5": "write 0.5",
    "1e3": "write 1000", "-010": "write -10", "0X1F": "write 31", "!!int '010'": "write 10",
}  # fmt: skip


def places(annotation: Any, before: str = "", behind: str = "") -> Iterator[Place]:
    """Yield each place below a value of this type where a number may stand."""
    bare, markers = unwrap(present(unwrap(annotation)[0]))
    markers = (*unwrap(annotation)[1], *markers)
    origin = get_origin(bare)
    if isinstance(bare, type) and issubclass(bare, Record):
        kind_of = next((marker for marker in markers if isinstance(marker, KindOf)), None)
        for key in kind_of.kinds.ours() if kind_of else ("",):
            kind = kind_of.kinds.find(key) if kind_of else bare
            assert kind is not None
            yield from within(kind, before + (f"{{{key}: , " if key else "{"), "}" + behind, key)
    elif origin is ByGateway:
        yield from places(get_args(bare)[0], before, behind)
    elif origin is tuple:
        yield from places(get_args(bare)[0], f"{before}[", f"]{behind}")
    elif origin is not None and origin.__name__ == "Mapping":
        yield from places(get_args(bare)[1], f"{before}{{x: ", f"}}{behind}")
    else:
        options = frozenset(unwrap(one)[0] for one in members(bare))
        if int in options or float in options:
            yield before, behind, options


def within(cls: type[Record], before: str, behind: str, kind: str) -> Iterator[Place]:
    on = "on: gw, " if cls.GATEWAYS else ""
    for key, one in settings(cls).items():
        start = before.replace(f"{kind}: , ", "") if kind == key else before
        yield from places(one.annotation, f"{start}{on}{key}: ", behind)
    if choice := alternatives(cls):
        for key in choice[1].kinds.ours():
            yield from places(choice[1].kinds.find(key), f"{before}{on}{key}: ", behind)


EVERY = sorted(places(Topology), key=lambda place: place[0])


def said(text: str, value: str = "") -> str:
    try:
        loads(text, "t", {"N": value})
    except InvalidTopology as error:
        return str(error)
    return ""


def test_the_keys_with_numbers_are_found() -> None:
    known = " ".join(before for before, _, _ in EVERY)
    for key in ("node", "baud", "bitrate", "targets", "port", "subject", "nodes", "tokens", "pattern", "bus"):
        assert f"{key}: " in known, key
    assert len(EVERY) > 60


@pytest.mark.parametrize("odd", ODD)
def test_no_key_takes_a_number_that_yaml_reads_in_its_own_way(odd: str) -> None:
    for before, behind, options in EVERY:
        assert ODD[odd] in (text := said(before + odd + behind)), before
        assert ("put it in quotes" in text) is (str in options), before


def test_a_variable_holds_a_plain_number_also_in_quotes() -> None:
    for before, behind, options in EVERY:
        given = "!!int '${N}'" if str in options else "'${N}'"
        assert "write 10" in said(before + given + behind, "010"), before


def test_plain_numbers_and_text_are_clear() -> None:
    plain = [
        "0",
        "7",
        "-7",
        "115200",
        "0x1f",
        "1.5",
        "1.",
        "2.5e+3",
        "e3",
        "1.2.3",
        "10.0.0.1",
        "a:1",
        "-",
        "",
    ]
    assert [text for text in plain if unclear(text)] == []


def test_names_of_digits_are_names_in_quotes() -> None:
    head = "name: t\ngateways: {'010': }\nbuses: {p: {on: '010', listen: 'tcp://127.0.0.1:5'}}\n"
    side = "bridges: {x: {on: '010', pattern: [fridge, '010'], join: [bus: p, uart: /dev/x]}}\n"
    assert loads(head + side).bridges["x"].pattern == ("fridge", "010")
    assert "put it in quotes" in said(head.replace("on: '010'", "on: 010"))
