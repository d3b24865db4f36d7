"""A record of several kinds without a kind: a key that is nearly one is taken for it."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import yaml
from yaml.nodes import MappingNode

from bridges.media import MEDIA
from bridges.protocols import PROTOCOLS
from bus.kinds import Kinds
from bus.schema import KindOf, Record, settings
from tests.topologies.support import GATEWAY, said
from topologies.loading.levels import holder_of
from topologies.loading.mappings import kind_among, slip_in
from topologies.model.bridges import Side

DEVICE = GATEWAY + "buses: {p: {on: gw}}\ndevices: {d: {on: gw, %s}}\n"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("tapp: [p]", 'd.tapp: unknown key "tapp"; did you mean "tap"?'),
        ("directory: /x", "d: a device is one of tap, log,"),  # a setting of some devices, and near no kind
        ("frob: [p]", "d: a device is one of tap, log,"),
    ],
)
def test_a_misspelt_kind_is_told_at_its_place(words: str, why: str) -> None:
    assert why in said(DEVICE % words)


@pytest.mark.parametrize("medium", MEDIA.all())
def test_each_key_of_a_medium_that_is_written_beside_it_is_told_where_it_belongs(medium: str) -> None:
    kind = MEDIA.find(medium)
    assert kind is not None
    keys = set(settings(kind)) - set(settings(Side))
    assert {key: holder_of(key, Side, [medium, key]) for key in keys} == dict.fromkeys(keys, medium)


SIDE_OF = GATEWAY + "buses: {p: {on: gw}}\nbridges: {b: {on: gw, join: [{bus: p}, {%s}]}}\n"


@pytest.mark.parametrize("protocol", sorted(set(PROTOCOLS.all()) - set(MEDIA.all())))
def test_each_protocol_that_is_written_as_a_key_is_told_where_it_belongs(protocol: str) -> None:
    wanted = f"protocol: {{{protocol}: ...}}"
    assert f"write it in protocol: {wanted}" in said(SIDE_OF % f"uart: /dev/x, {protocol}: {{}}")
    deep = said(SIDE_OF % f"uart: {{port: /dev/x, {protocol}: {{}}}}")
    assert f"write it beside uart, not in it: {wanted}" in deep


@pytest.mark.parametrize("key", sorted(set(settings(Side)) - {"bus"}))
@pytest.mark.parametrize("medium", MEDIA.all())
def test_each_key_of_a_side_that_is_written_in_its_medium_is_told_where_it_belongs(
    medium: str, key: str
) -> None:
    kind = MEDIA.find(medium)
    assert kind is not None
    if key not in settings(kind):
        text = said(SIDE_OF % f"{medium}: {{{key}: x}}")
        assert f"write it beside {medium}, not in it: {key}: ..." in text


@dataclass(frozen=True, slots=True, kw_only=True)
class Base(Record):
    on: Annotated[str, "its gateway"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours(Base):
    ours: Annotated[str, "what it is of"]
    size: Annotated[int, "how much"] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign(Base):
    foreign: Annotated[str, "what it is of"]


class Asked(Kinds[Base]):
    """A table with two kinds of ours and one of another distribution, that notes what is looked up."""

    def __init__(self) -> None:
        super().__init__("none", {"ours": "", "more": ""})
        self.asked: list[str] = []

    def find(self, key: str) -> type[Base] | None:
        self.asked.append(key)
        return {"ours": Ours, "more": Ours, "foreign": Foreign}.get(key)

    def all(self) -> tuple[str, ...]:
        return "ours", "more", "k" * 64


def mapping(text: str) -> MappingNode:
    node = yaml.compose(text)
    assert isinstance(node, MappingNode)
    return node


@pytest.mark.parametrize(
    ("text", "given", "kind", "asked"),
    [
        ("{on: a}", [], None, []),
        ("{on: a, ours: x, size: 1}", ["ours"], Ours, ["ours"]),
        ("{on: a, foreign: x}", ["foreign"], Foreign, ["foreign", "foreign"]),
        ("{on: a, ours: x, more: y}", ["ours", "more"], None, []),
        ("{on: a, ours: x, foreign: y}", ["ours", "foreign"], None, ["ours", "foreign"]),
        ("{on: a, ours: x, odd: y}", ["ours"], Ours, ["ours", "odd"]),
    ],
)
def test_a_record_is_of_its_only_kind_and_foreign_ones_are_looked_up_only_for_unknown_keys(
    text: str, given: list[str], kind: type[Base] | None, asked: list[str]
) -> None:
    table = Asked()
    assert kind_among(KindOf("a record", table), Base, mapping(text)) == (given, kind)
    assert table.asked == asked


def test_a_long_key_is_cut_where_it_is_told() -> None:
    slip = slip_in(KindOf("a record", Asked()), Base, mapping("k" * 70 + ": 1"))
    assert slip is not None
    assert slip[1] == f'unknown key "{"k" * 64}"; did you mean "{"k" * 64}"?'
