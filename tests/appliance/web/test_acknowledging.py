"""An alarm is acknowledged by POST with a person's own token, from the same origin, and by no other way."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from appliance.compose import Appliance
from tests.appliance.web.web_support import get
from tests.helpers.appliances import appliance_of
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

READ, ANN = "read-0123456789ab", "ann-0123456789abc"
TEXT = """\
name: plant
gateways: {{gw: {{status: {{listen: "http://127.0.0.1:{}", token_file: {}/read, ack_file: {}}}}}}}
buses: {{hall: {{on: gw}}}}
alarms: {{silent: {{bus: hall, pattern: fridge, missing_s: 0.1}}}}
"""


@asynccontextmanager
async def raised(directory: Path, ack_file: str, patch: pytest.MonkeyPatch) -> AsyncIterator[Appliance]:
    """Run a gateway with a page, on which an alarm is raised."""
    patch.setenv("XDG_STATE_HOME", str(directory))  # what other tests acknowledged is not there
    (directory / "read").write_text(READ)
    (directory / "people").write_text(f"ann {ANN}\n")
    text = TEXT.format(free_port(), directory, (ack_file and directory / ack_file) or "null")
    made = appliance_of(loads(text, "t.yaml"), "gw")
    made.open(asyncio.get_running_loop())
    try:
        await until(lambda: made.alarms.records()[0]["stage"] == "raised")
        yield made
    finally:
        made.close()


async def post(one: Appliance, token: str = "", *headers: str, path: str = "/alarms/silent/ack") -> int:
    shown = (f"Authorization: Bearer {token}",) if token else ()
    return (await get(one.page.url, path, "Content-Length: 0", *shown, *headers, method="POST")).status


async def test_only_a_person_s_own_token_from_the_same_origin_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with raised(tmp_path, "people", monkeypatch) as one:
        assert await post(one) == 401
        assert await post(one, READ) == 401  # it is for reading
        assert await post(one, "", f"Cookie: buscoupler_token={ANN}") == 401
        assert await post(one, ANN, "Origin: http://evil.example") == 403
        for site in ("cross-site", "same-site"):
            assert await post(one, ANN, f"Sec-Fetch-Site: {site}", "Sec-Fetch-Mode: navigate") == 403
        assert await post(one, ANN, path="/alarms/none/ack") == 404
        assert await post(one, ANN, path="/alarms/silent") == 405
        assert (await get(one.page.url, "/status.json", f"Authorization: Bearer {ANN}")).status == 401
        assert one.alarms.records()[0]["stage"] == "raised"
        assert await post(one, ANN, f"Origin: {one.page.url}", "Sec-Fetch-Site: same-origin") == 200
        row = one.alarms.records()[0]
        assert (row["stage"], row["by"]) == ("acknowledged", "ann")
        assert await post(one, ANN) == 409
        assert [event.cause for event in one.monitor.events if event.kind == "alarm"][-1].startswith(
            "fridge: acknowledged by ann"
        )
        shown = json.loads((await get(one.page.url, "/status.json", f"Authorization: Bearer {READ}")).body)
        assert shown["alarms"] == [row]
        metrics = (await get(one.page.url, "/metrics", f"Authorization: Bearer {READ}")).body.decode()
        labels = '{alarm="silent",of="fridge",severity="warning"}'
        assert f"buscoupler_alarm{labels} 1.0" in metrics
        assert f"buscoupler_alarm_unacknowledged{labels} 0.0" in metrics


async def test_without_a_file_of_people_nobody_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with raised(tmp_path, "", monkeypatch) as one:
        assert await post(one, READ) == 403
        assert await post(one, ANN) == 403
