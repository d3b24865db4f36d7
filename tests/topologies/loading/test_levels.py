"""Keys that stand at another level than theirs: what is said tells where they belong, and is right."""

import re
from dataclasses import dataclass
from typing import Annotated

import pytest

from bus.schema import Record, settings
from tests.topologies.places import EVERY
from tests.topologies.support import said
from topologies.loading.levels import holder_of, home_of
from topologies.model import Topology

ROOM = re.compile(r"(\w+): \.\.\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner(Record):
    """A record of which another one has several."""

    depth: Annotated[int, "how deep it is"] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer(Record):
    """A record with others."""

    one: Annotated[Inner | None, "one"] = None
    some: Annotated[tuple[Inner, ...], "some"] = ()
    width: Annotated[int, "how wide it is"] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Several(Record):
    """A record with several others only."""

    some: Annotated[tuple[Inner, ...], "some"] = ()


def test_a_key_that_was_written_a_level_too_high_is_found_below() -> None:
    assert [holder_of("depth", cls, ()) for cls in (Outer, Several, Inner)] == ["one", "some", ""]


WHOLE = "name: t\ngateways: {gw: {}}\nbuses: {p: {on: gw}}\n"
KEYS = sorted({place.before.rpartition("{")[2].rpartition(", ")[2].partition(":")[0] for place in EVERY})


def homes(text: str) -> list[str]:
    return text.partition("belongs elsewhere: ")[2].splitlines()[0].split(" or ") if "belongs" in text else []


def test_a_key_of_the_page_at_the_top_is_told_to_belong_to_a_gateway() -> None:
    """`status` was only called unknown there."""
    text = said(WHOLE + "status: 'http://127.0.0.1:9943'")
    assert homes(text) == ["gateways: {NAME: {status: ...}}"]
    assert homes(said(WHOLE.replace("on: gw", "on: gw, node: 1")))[0] == "gateways: {NAME: {node: ...}}"
    assert homes(said(WHOLE + "token_file: x"))[-1] == "gateways: {NAME: {status: {token_file: ...}}}"


@pytest.mark.parametrize("key", KEYS)
def test_each_place_that_is_told_of_has_that_key(key: str) -> None:
    told = homes(home_of(key, Topology))
    assert len(told) <= 3
    for home in told:
        assert ROOM.findall(home)[-1] == key
        assert f'unknown key "{key}"' not in said(f"name: t\n{home}" if key != "name" else home)


def test_most_keys_of_the_schema_have_a_place_to_tell_of() -> None:
    told = [key for key in KEYS if home_of(key, Topology)]
    assert len(told) > 0.8 * len(KEYS) > 100
    assert not home_of("port", Topology)  # of each medium with a network
    assert not home_of("bogus", Topology)


def test_what_is_written_like_a_key_here_goes_before_a_key_elsewhere() -> None:
    assert 'did you mean "buses"?' in said(WHOLE + "bus: p")
    assert "elsewhere: devices: {NAME: {tap: ..., keep_days: ...}}" in said(
        WHOLE + "keep_days: 4"
    )  # not keys
    assert all(home_of(key, Topology) for key in settings(Topology))
