"""`buscoupler alarms` shows the alarms of a running gateway, acknowledges one, and makes rules."""

import asyncio
import json
from pathlib import Path

import pytest

from appliance.alarms.asking import alarms_responder, alarms_socket
from appliance.commandline.cli import main
from appliance.local.responder import WithResponders
from appliance.status.client import status_socket
from appliance.status.responder import status_responder
from tests.helpers import ROOT
from tests.helpers.appliances import appliance_of
from tests.helpers.peers import until
from topologies.loading.loader import loads

TEXT = """\
name: plant
gateways: {gw: {status: {serve: false}}}
buses: {hall: {on: gw}}
alarms: {silent: {bus: hall, pattern: fridge, missing_s: 0.1, text: "no fridge"}}
"""


async def test_what_is_raised_is_shown_and_acknowledged_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    one = appliance_of(loads(TEXT, "t.yaml"), "gw")
    view, where = one.view(), ("--run-directory", str(tmp_path))
    served = WithResponders(
        one,
        status_responder(tmp_path / status_socket(()), view),
        alarms_responder(tmp_path / alarms_socket(()), view),
    )
    served.open(asyncio.get_running_loop())

    async def said(*words: str) -> tuple[int, str]:
        status = await asyncio.to_thread(main, ["alarms", *words])
        out, err = capfd.readouterr()
        return status, out + err

    try:
        await served.opened()
        await until(lambda: one.alarms.records()[0]["stage"] == "raised")
        status, text = await said(*where)
        assert (status, "alarm silent raised" in text, "no fridge" in text) == (1, True, True)
        ack = ("ack", "silent", "--by", "ann", *where)
        assert await said(*ack) == (0, "silent: fridge: acknowledged by ann\n")
        status, text = await said(*ack)
        assert (status, "nothing of it is raised" in text) == (1, True)
        status, text = await said("ack", "loud", *where)
        assert (status, "no running gateway here has it" in text) == (1, True)
        _, text = await said("--json", *where)
        assert json.loads(text)["by"] == "ann"
    finally:
        served.close()


def test_rules_are_those_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["alarms", "rules", str(ROOT / "examples/alarms/plant.yaml")]) == 0
    assert '- alert: "warm"' in capsys.readouterr().out
    assert main(["alarms", "rules", str(ROOT / "topologies/two-buses.yaml")]) == 1


def test_where_nothing_runs_there_is_nothing_to_show(tmp_path: Path) -> None:
    assert main(["alarms", "--run-directory", str(tmp_path)]) == 1
    assert main(["alarms", "ack", "x", "--run-directory", str(tmp_path)]) == 1
