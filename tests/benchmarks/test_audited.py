"""When a trial of the audit finds it wrong, by what was heard at the doors; and which plants there are."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("can")

from benchmarks.audited import content, truth
from benchmarks.audited.shipped import FILES, made
from tests.helpers import ROOT

NUMBERS = [b"%d" % number for number in range(10)]
WHERE = {"one": "bus one", "two": "bus two"}
KEYS = dict(enumerate(NUMBERS))


class Heard(NamedTuple):
    """Who was at a door."""

    said: Mapping[bytes, tuple[float, str]]
    times: Mapping[bytes, Sequence[float]]
    is_open: bool = True

    def was_open(self, from_s: float, to_s: float) -> bool:
        return self.is_open


def doors(*, without: int = -1, twice: int = -1, is_open: bool = True) -> dict[str, Heard]:
    """Return two doors: at one all frames are said, and the other hears them."""
    times = {data: [0.1] * (1 + (n == twice)) for n, data in enumerate(NUMBERS) if n != without}
    said = {data: (float(n), "motor") for n, data in enumerate(NUMBERS)}
    return {"one": Heard(said, {}), "two": Heard({}, times, is_open)}


def finding(kind: str, key: int, segment: str = "bus two") -> dict[str, Any]:
    return {"kind": kind, "stage": "in bridge", "segment": segment, "hub": None, "key": key}


@pytest.mark.parametrize(
    ("there", "told", "wrong"),
    [
        (doors(), [], 0),
        (doors(without=3), [finding("lost", 3)], 0),
        (doors(without=3), [finding("not captured", 3)], 0),
        (doors(without=3), [], 1),
        (doors(without=3, is_open=False), [], 0),  # nobody was there
        (doors(), [finding("lost", 3)], 1),
        (doors(), [finding("lost", 3, "bus one")], 0),
        (doors(), [finding("duplicate", 3)], 1),
        (doors(twice=3), [finding("duplicate", 3)], 0),
        (doors(twice=3), [], 1),
    ],
)
def test_an_audit_is_right_that_accuses_nobody_wrongly_and_misses_nothing(
    there: dict[str, Heard], told: list[dict[str, Any]], wrong: int
) -> None:
    found = [
        *truth.accused(told, KEYS, WHERE, there),
        *truth.missed({"findings": told}, KEYS, set(NUMBERS), there, Counter()),
    ]
    assert len(found) == wrong, found


def test_what_nobody_recorded_and_what_a_ledger_dropped_is_no_miss() -> None:
    there, nothing = doors(without=3), {"findings": list[Any]()}
    assert not list(truth.missed(nothing, KEYS, {*NUMBERS} - {b"3"}, there, Counter()))
    drops = truth.dropped([{"bus": "bus two", "dir": 1, "count": 1}], WHERE)
    assert not list(truth.missed(nothing, KEYS, set(NUMBERS), there, drops))


def test_the_hash_is_that_of_its_specification() -> None:
    known = {b"": 0xEF46DB3751D8E999, b"abc": 0x44BC2CF5AD770999, bytes(range(100)): 0x6AC1E58032166597}
    assert {text: content.xxh64(text, 0) for text in known} == known


@pytest.mark.parametrize("name", FILES)
def test_each_shipped_topology_is_a_plant(name: str, tmp_path: Path) -> None:
    text, topology = made(name, tmp_path)
    assert text.count("  rig-") == len(topology.gateways)
    assert "/dev/" not in text.replace("/dev/null", "")
    assert "0.0.0.0" not in text


def test_no_shipped_topology_is_left_out() -> None:
    texts = {path.read_text() for path in FILES.values()}
    own = {"two-gateways", "devices"}  # one needs certificates, one a meter, which its own test makes
    for path in (
        *(one for one in ROOT.glob("examples/**/*.yaml") if one.parent.name not in own),
        *ROOT.glob("topologies/*.yaml"),
        *ROOT.glob("packaging/**/*.yaml"),
    ):
        assert path.read_text() in texts, path
