"""An alarm is acknowledged by POST with a person's own token, from the same origin, and by no other way."""

import asyncio
import json
from pathlib import Path

import pytest

from appliance.compose import Appliance
from tests.appliance.web.web_support import ANN, READ, get, raised
from tests.helpers.browser import Page, browser, needs_chromium


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


@needs_chromium
async def test_on_the_page_it_is_acknowledged_with_a_token_that_is_written_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with raised(tmp_path, "people", monkeypatch) as one:
        await asyncio.to_thread(click, f"{one.page.url}/?token={READ}")
        assert one.alarms.records()[0]["by"] == "ann"


def click(url: str) -> None:
    with browser() as page:
        page.size(390, 844)
        page.open(url)
        button = "document.querySelector('table[data-list=alarms] button:not([hidden])')"
        page.until(f"!!{button}")
        assert page.run("document.documentElement.scrollWidth <= innerWidth")
        page.run(f"{button}.click()")
        assert "First write your token" in said(page)
        page.run("document.querySelector('#ack-token').value = 'wrong'")
        page.run(f"{button}.click()")
        page.until(
            "document.querySelector('#ack-said').textContent.startsWith('Not acknowledged: show your own')"
        )
        page.run(f"document.querySelector('#ack-token').value = '{ANN}'")
        page.run(f"{button}.click()")
        page.until("document.querySelector('#ack-said').textContent === 'silent is acknowledged.'")
        page.until(f"!{button}")
        page.until("document.querySelector('table[data-list=alarms]').textContent.includes('acknowledged')")


def said(page: Page) -> str:
    return str(page.run("document.querySelector('#ack-said').textContent"))
