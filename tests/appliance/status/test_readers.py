"""The readers of a status take whatever fits its shape: any process may answer, also a later version."""

from random import Random
from typing import Any

import pytest

from appliance.status.older import completed
from appliance.status.overlay import marks
from appliance.status.shape import STATUS, VERSION, Maybe, fits
from appliance.status.silent import silent
from appliance.status.terminal import head, key_of, pages
from topologies.picture.marks import SIGNS

_LEAVES = {
    str: ("", "up", "ok", "bad\x1b[2J", "fridge", "gw-a", "1/x"),
    int: (0, 1, -1, 1 << 62, -(1 << 62)),
    float: (0.0, 0.5, -1, 2.0**62, -(2.0**62)),
    bool: (False, True),
}


def document(shape: Any, chance: Random) -> Any:
    """Return a document of a shape: a leaf is one of a few values, a list or table has at most two items."""
    if isinstance(shape, list):
        return [document(shape[0], chance) for _ in range(chance.randrange(3))]
    if not isinstance(shape, dict):
        return chance.choice(_LEAVES[shape])
    if str in shape:
        keys = chance.sample(_LEAVES[str], chance.randrange(3))
        return {key: document(shape[str], chance) for key in keys}
    known = {
        name: inner for name, inner in shape.items() if not isinstance(inner, Maybe) or chance.random() < 0.5
    }
    return {
        name: document(inner.shape if isinstance(inner, Maybe) else inner, chance)
        for name, inner in known.items()
    }


def status(chance: Random) -> dict[str, Any]:
    found: dict[str, Any] = document(STATUS, chance) | {"version": VERSION}
    assert fits(found)
    return completed(found)


@pytest.mark.parametrize("seed", range(4))
def test_no_reader_raises_and_no_control_character_is_shown(seed: int) -> None:
    chance = Random(seed)
    for _ in range(100):
        one, before = status(chance), status(chance)
        lines = list(silent([one], {}, {}))
        shown = pages([one], {key_of(one): before}, lines, 80) + head([one], lines)
        assert "\x1b" not in shown
        assert all(mark.state in SIGNS for mark in marks(one).values())
