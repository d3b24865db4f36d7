"""A gateway in its plant: it judges the others at each look and no oftener, and alone it does neither."""

from contextlib import closing
from typing import Any

import pytest

from appliance.plant.watch import PlantWatch
from appliance.simulated.plant import SimulatedPlant
from appliance.status.snapshot import snapshot
from topologies.loading.loader import loads

TWO = """\
name: t
gateways: {a: {}, b: {}}
buses:
  x: {on: a, listen: [{url: "tcp://127.0.0.1:5", trunk: true}]}
  y: {on: b, trunks: x}
"""


def test_two_gateways_are_a_plant_and_hear_each_other() -> None:
    with closing(SimulatedPlant(loads(TWO))) as plant:
        plant.wait(8)
        for gateway in plant.gateways.values():
            rows = snapshot(gateway.view())["plant"]["gateways"]
            assert [row["state"] for row in rows] == ["answers", "answers"]


@pytest.mark.parametrize(("text", "looks"), [(TWO, True), ("name: t\ngateways: {a: {}}\n", False)])
def test_the_others_are_judged_at_each_look(text: str, looks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    said, look, judge = list[str](), PlantWatch.look, PlantWatch.judge

    def looking(*some: Any, **more: Any) -> bool:
        is_time = look(*some, **more)
        said.extend(["look"] * is_time)
        return is_time

    def judging(*some: Any) -> None:
        said.append("judge")
        judge(*some)

    monkeypatch.setattr(PlantWatch, "look", looking)
    monkeypatch.setattr(PlantWatch, "judge", judging)
    with closing(SimulatedPlant(loads(text))) as plant:
        plant.wait(20)
    assert said == ["look", "judge"] * (len(said) // 2)
    assert bool(said) == looks
