"""What a journal keeps is told wherever a status is shown: rows, `top`, page, metrics, readiness, events."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from appliance.compose import Appliance
from appliance.status.shape import fits
from appliance.status.terminal import page
from appliance.status.words import kept, span, troubles
from appliance.web.metrics import render
from appliance.web.page_model import page_fields
from bus.wire.batch import from_payloads
from bus.wire.frame import pack
from tests.appliance.status.status_support import status_of
from tests.helpers.appliances import appliance_of
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

TEXT = """\
name: t
gateways: {{gw-a: {{address: 127.0.0.1, status: {{serve: false}}}}, gw-b: {{address: 127.0.0.1}}}}
buses:
  a: {{on: gw-a, listen: "tcp://127.0.0.1:0", trunks: [{{bus: b, durable: {directory}}}]}}
  b: {{on: gw-b, listen: [{{url: "tcp://127.0.0.1:{port}", trunk: true}}]}}
"""
Row = Mapping[str, Any]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less for a hello, and look at journals more often."""
    monkeypatch.setattr("bridges.durable.connection.HELLO_S", 0.2)
    monkeypatch.setattr("bridges.durable.house.TICK_S", 0.05)


def row_of(status: Row) -> Row:
    return next(row for row in status["hubs"][0]["links"] if row["name"].endswith(" journal"))


@pytest.fixture
async def open_with() -> AsyncIterator[Callable[[Path], Appliance]]:
    opened = list[Appliance]()

    def made(directory: Path) -> Appliance:
        text = TEXT.format(directory=directory, port=free_port())
        opened.append(appliance_of(loads(text, "t.yaml"), "gw-a"))
        opened[-1].open(asyncio.get_running_loop())
        return opened[-1]

    yield made
    for one in opened:
        one.close()


async def test_what_waits_for_an_end_is_told_everywhere(
    open_with: Callable[[Path], Appliance], tmp_path: Path
) -> None:
    appliance = open_with(tmp_path / "journal")
    await until(lambda: row_of(status_of(appliance))["state"] == "up", what="the journal")
    appliance.parts["bus a"].hub.sides[0].publish(from_payloads([pack(1, (7,), b"x")] * 3), None)  # type: ignore[attr-defined]
    await until(lambda: row_of(status_of(appliance))["kept"][0]["messages"] == 3, what="a look at it")
    status = status_of(appliance)
    assert fits(status)
    (end,) = row_of(status)["kept"]
    assert (end["for"], end["state"], end["directory"]) == ("gw-b", "away", str(tmp_path / "journal"))
    line = kept(row_of(status))[0]
    assert line.startswith("for gw-b (away): 3 messages, ")
    assert line in page(status, None, None)
    assert any(line.split(",")[0] in row["fault"] for row in page_fields(status)["rows"])
    text = render(status, "")[0].decode()
    assert 'buscoupler_kept_messages{for="gw-b",hub="a",link="trunk/' in text
    assert 'buscoupler_kept_connected{for="gw-b"' in text


async def test_a_journal_that_cannot_be_opened_is_trouble(
    open_with: Callable[[Path], Appliance], tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    appliance = open_with(blocked / "journal")
    await until(lambda: row_of(status_of(appliance))["state"] == "waiting", what="the fault")
    status = status_of(appliance)
    assert "messages are live only" in row_of(status)["fault"]
    assert any("messages are live only" in line for line in troubles(status))
    assert "messages are live only" in page(status, None, None)
    appliance.monitor.scan(0.0)
    told = [one.cause for one in appliance.monitor.events if "journal" in one.source]
    assert any("waiting: messages are live only" in cause for cause in told)
    metrics = render(status, "")[0].decode().splitlines()
    assert any(" journal" in line and line.endswith(" 0.0") for line in metrics if "link_up{" in line)


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ("synced", "acknowledges after its fdatasync"),
        ("delivered", "acknowledges after delivery"),
        ("plain", "says no hello, acknowledges nothing"),
        ("away", "away"),
    ],
)
def test_each_state_of_an_end_has_its_words(state: str, word: str) -> None:
    end = {"for": "gw-b", "state": state, "messages": 0}
    assert kept({"kept": [end]}) == [f"for gw-b ({word}): nothing waits"]
    end |= {"messages": 12_000, "bytes": 3_000_000, "oldest_ms": 9_000_000, "to_go_s": 90.0}
    assert kept({"kept": [end]})[0].endswith("12,000 messages, 3.0 MB, the oldest 2 h old, 90 s to go")
    assert kept({}) == []


def test_times_are_told_in_their_largest_unit() -> None:
    assert [span(s) for s in (0.4, 119, 120, 7199, 7200, 172_800)] == [
        "0 s", "119 s", "2 min", "120 min", "2 h", "2 days",
    ]  # fmt: skip
