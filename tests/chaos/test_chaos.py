"""A plant under many faults: whatever the seed, what docs/testing.md promises holds."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.chaos.__main__ import CHUNK, child, chunks, environment, line
from tests.chaos.shrink import shortest

SEEDS = 3  # the same ones each time: `make chaos` tries others


@pytest.mark.timeout(900)
def test_seeds_break_no_law_and_repeat_to_the_last_event() -> None:
    ran = subprocess.run(child(0, SEEDS), stdout=subprocess.PIPE, text=True, env=environment(), check=True)
    told = [json.loads(one) for one in ran.stdout.splitlines()]
    assert [one["seed"] for one in told] == list(range(SEEDS))
    assert not [line(one) for one in told if one["failures"]]
    assert all(one["heard"] > one["frames"] for one in told)
    again = subprocess.run(child(2, 1), stdout=subprocess.PIPE, text=True, env=environment(), check=True)
    assert json.loads(again.stdout)["digest"] == told[2]["digest"]


@pytest.mark.timeout(600)
def test_takeovers_lose_and_double_nothing_also_soon_after_one_another() -> None:
    command = [sys.executable, "-m", "tests.chaos.drill", "--json", "--count", "11"]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment(), check=False)
    told = [json.loads(one) for one in ran.stdout.splitlines()]
    assert len(told) == 22
    assert not [one for one in told if one["doubled"] or one["echoed"]]
    # Without envelopes, what comes before a gateway that is back has listened for a while may be lost.
    assert not [
        one for one in told if one["lost"] and (one["bridge"], one["kind"]) != ("lamp", "second kill")
    ]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("kind", "target"), [("freeze", "gw-b"), ("partition", "gw-a gw-b")])
def test_what_one_long_fault_holds_up_in_the_ring_of_trunks_does_not_come_twice(
    kind: str, target: str
) -> None:
    """A program that wakes up, and a partition that ends, bring late copies of what came by the other way."""
    command = child(5, 1, "--fault", kind, target, "2", "11.5")
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment(), check=True)
    (told,) = map(json.loads, ran.stdout.splitlines())
    assert told["frames"] > 0
    assert told["failures"] == []


def told_by(module: str, *more: str) -> list[dict[str, Any]]:
    """Run a module of the chaos; return what its lines tell."""
    command = [sys.executable, "-m", f"tests.chaos.{module}", *more]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment(), check=True)
    return [json.loads(one) for one in ran.stdout.splitlines()]


@pytest.mark.timeout(300)
def test_a_freeze_soon_after_the_start_costs_a_lease_once_the_gateways_have_settled() -> None:
    told = told_by("starts", "--at", "0.05", "--at", "0.5")
    assert [one["settling"] for one in told] == [4, 4, 0, 0]
    # a lease of 250 ms, at most a heartbeat of it gone, and up to 60 ms to settle; before that, a start more
    assert all(one["wait_ms"] < 320 for one in told)
    assert not any(one["doubled"] for one in told)
    assert not any(one["lost"] for one in told if not one["settling"])


@pytest.mark.timeout(300)
def test_a_link_cut_in_one_direction_or_flapping_loses_and_doubles_nothing() -> None:
    """One of each kind, and a gateway that hears no broker at all; `make takeovers` has them all."""
    chosen = [option for number in (2, 7, 15, 18) for option in ("--cut", str(number))]
    told = told_by("oneway", "--held", "0.7", "--rate", "20", *chosen)
    assert {one["cut"].split()[0] for one in told} == {"trunk", "broker", "brokers", "medium"}
    assert all(one["sent"] for one in told)
    assert not [one for one in told if one["lost"] or one["doubled"] or one["echoed"]]


def test_the_shortest_list_has_only_what_is_needed() -> None:
    assert shortest(range(16), lambda some: {3, 11} <= set(some)) == [3, 11]
    assert shortest(range(5), lambda some: True) == []
    assert shortest([7], lambda some: 7 in some) == [7]


def test_seeds_of_an_earlier_run_are_left_out() -> None:
    assert list(chunks(0, 10, {2, 3})) == [(0, 2), (4, 6)]
    assert list(chunks(0, CHUNK + 1, set())) == [(0, CHUNK), (CHUNK, 1)]
    assert list(chunks(5, 2, {5, 6})) == []
