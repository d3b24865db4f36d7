"""The courses of topologies: which of them follow each other, and which stand beside each other."""

from typing import Any

import pytest

pytest.importorskip("pyspark")

from pipeline.analysis.shared.courses import courses
from pipeline.analysis.shared.inventory import Version

BUS: dict[str, Any] = {"bus a": {}}
BRIDGE: dict[str, Any] = {"bridge a": {"pattern": []}}
DOOR: dict[str, Any] = {"bridge a": {"pattern": [1]}}
EVER = 99

Told = tuple[int, int, int, dict[str, Any]]
"""A run, from when it told, the time of its last row, and the hubs."""

CASES: dict[str, tuple[list[Told], list[list[tuple[int, Any]]]]] = {
    "none": ([], []),
    "nothing changed": ([(1, 0, EVER, BUS), (1, 5, EVER, BUS)], [[(0, BUS)]]),
    "a reload": ([(1, 0, EVER, BRIDGE), (1, 5, EVER, DOOR)], [[(0, BRIDGE), (5, DOOR)]]),
    "a bridge came by a reload": ([(1, 0, EVER, {}), (1, 5, EVER, BRIDGE)], [[(0, {}), (5, BRIDGE)]]),
    "a bridge went by a reload": (
        [(1, 0, EVER, BUS | BRIDGE), (1, 5, EVER, BUS)],
        [[(0, BUS | BRIDGE), (5, BUS)]],
    ),
    "two recorders": ([(1, 0, EVER, BUS), (2, 5, EVER, BRIDGE)], [[(0, BUS)], [(5, BRIDGE)]]),
    "one of them was killed": ([(1, 0, EVER, BUS), (2, 1, 5, BRIDGE)], [[(0, BUS)], [(1, BRIDGE)]]),
    "it came again": (
        [(1, 0, EVER, BUS), (2, 1, 5, BRIDGE), (3, 9, EVER, BRIDGE)],
        [[(0, BUS)], [(1, BRIDGE)]],
    ),
    "it came again with a filter": (
        [(1, 0, EVER, BUS), (2, 1, 5, BRIDGE), (3, 9, EVER, DOOR)],
        [[(0, BUS)], [(1, BRIDGE), (9, DOOR)]],
    ),
    "two recorders of one bus": (
        [(1, 0, EVER, BUS | BRIDGE), (2, 1, EVER, BUS)],
        [[(0, BUS | BRIDGE)]],
    ),
    "of them one was told of a reload": (
        [(1, 0, EVER, BUS | BRIDGE), (2, 1, EVER, BUS), (1, 5, EVER, BUS | DOOR), (2, 5, EVER, BUS)],
        [[(0, BUS | BRIDGE), (5, BUS | DOOR)]],
    ),
    "a restart without the bridge": (
        [(1, 0, 4, BUS | BRIDGE), (2, 5, EVER, BUS)],
        [[(0, BUS | BRIDGE), (5, BUS)]],
    ),
    "a restart in several processes": (
        [(1, 0, 4, BUS | BRIDGE), (2, 5, EVER, BUS), (3, 6, EVER, BRIDGE)],
        [[(0, BUS | BRIDGE), (5, BUS), (6, BUS | BRIDGE)]],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_topologies_of_one_run_or_with_a_hub_in_common_are_one_course(case: str) -> None:
    told, expected = CASES[case]
    versions = [Version("gw", since, hubs, boot, until) for boot, since, until, hubs in told]
    for one in (versions, versions[::-1]):
        found = courses(one)
        assert [[(state.from_ns, state.hubs) for state in course] for course in found] == expected


def test_gateways_have_courses_of_their_own() -> None:
    assert len(courses([Version("gw-a", 0, BRIDGE), Version("gw-b", 0, BRIDGE)])) == 2
