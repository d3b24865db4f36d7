"""A gateway in its plant: it judges the others at each look and no oftener, and alone it does neither."""

from contextlib import closing

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
    said = list[str]()
    look, judge = PlantWatch.look, PlantWatch.judge
    monkeypatch.setattr(
        PlantWatch, "look", lambda *some, **more: look(*some, **more) and (said.append("look") or True)
    )
    monkeypatch.setattr(PlantWatch, "judge", lambda *some: (said.append("judge"), judge(*some))[1])
    with closing(SimulatedPlant(loads(text))) as plant:
        plant.wait(20)
    assert said == ["look", "judge"] * (len(said) // 2)
    assert bool(said) == looks
