"""Tests of the work for large plants: no search walks over all sides again for each of them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from topologies.checks.checker import check_wired
from topologies.loading.loader import loads
from topologies.resolved.resolve import resolve
from topologies.wiring.segments import Wiring, wired

HEAD = 'name: t\ngateways: {gw: {node: 1}}\nbuses: {p: {on: gw, listen: "tcp://127.0.0.1:7001"}}\nbridges:\n'
SIDES = {
    "that ask": "uart: /dev/ttyS#, protocol: {queries: {queries: [{ask: W, pattern: scale#/weight}]}}",
    "that read": "can: {channel: can#}, protocol: {raw: {receive: [7], root: r#}}",
    "of TMQ": "can: {channel: can#}, deny: [x#]",
    "that rename": "uart: /dev/ttyS#, rename: {a#: b#}",
}


class Walked(tuple[Any, ...]):
    """A tuple that counts how often something walks over it, with others in `walks`."""

    walks: list[int]

    def __iter__(self) -> Iterator[Any]:
        self.walks[0] += 1
        return super().__iter__()


def walks(side: str, bridges: int, work: Callable[[Wiring], Any]) -> int:
    """Return how often some work walks over all sides, or all links, of a plant with so many bridges."""
    lines = (f"  b#: {{on: gw, pattern: [b#], join: [{{bus: p}}, {{{side}}}]}}\n" for _ in range(bridges))
    text = HEAD + "".join(line.replace("#", str(number)) for number, line in enumerate(lines))
    wiring, count = wired(loads(text)), [0]
    joints, edges = Walked(wiring.joints), Walked(wiring.edges)
    joints.walks = edges.walks = count
    work(replace(wiring, joints=joints, edges=edges))
    return count[0]


@pytest.mark.parametrize(
    "work", [check_wired, lambda wiring: resolve(wiring, "gw")], ids=["check", "resolve"]
)
@pytest.mark.parametrize("side", SIDES.values(), ids=SIDES.keys())
def test_a_large_plant_is_walked_over_as_often_as_a_small_one(
    side: str, work: Callable[[Wiring], Any]
) -> None:
    few = walks(side, 3, work)
    assert 0 < few == walks(side, 12, work)
