"""The engine: `check` accepts its topology, and a gateway runs it with the engine on a multicast group."""

import asyncio
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

import pytest
import yaml

from appliance.commandline.cli import main
from bus.hub import Hub
from bus.names import Names
from bus.transports.links import make_link
from bus.wire.frame import unpack
from bus.wire.notation import pattern_of
from tests.appliance.web.web_support import get, status_of
from tests.bridges.protocols.spoken_support import message
from tests.helpers import ROOT
from tests.helpers.appliances import appliance_of
from tests.helpers.peers import Ear, until
from tests.helpers.ports import free_port
from topologies.checks.checker import check
from topologies.loading.loader import load, loads
from topologies.names import known

FOLDER = ROOT / "examples/engine"
FILE = FOLDER / "engine.yaml"


def test_check_has_nothing_to_say() -> None:
    assert list(check(load(FILE))) == []


def test_the_page_shows_what_the_example_has() -> None:
    page = (ROOT / "docs/protocols/dbc.md").read_text()
    shown = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[0])
    shipped = yaml.safe_load(FILE.read_text())
    sides = [one["bridges"]["engine"]["join"][1]["protocol"] for one in (shown, shipped)]
    assert sides[0] == sides[1]


def test_show_lists_its_values_with_units(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--values", str(FILE)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert "engine/Engine/Speed  rpm  0 to 16383.75" in shown
    assert "engine/Command/Mode  0 to 3  (0 Off, 1 Limit, 2 Hold)  command" in shown


@pytest.fixture
def port() -> Iterator[int]:
    """Run the engine on a port of the group, a little faster than it is."""
    spec = spec_from_file_location("engine", FOLDER / "engine.py")
    assert spec is not None and spec.loader is not None  # noqa: PT018
    engine: Any = module_from_spec(spec)
    spec.loader.exec_module(engine)
    chosen, bus, ended = free_port(), engine.can.Bus, threading.Event()

    def sleep(_: float) -> None:
        if ended.wait(0.02):
            sys.exit()

    engine.can = type(
        "Can", (), {"Bus": lambda **key: bus(port=chosen, **key), "Message": engine.can.Message}
    )
    engine.time = type("Time", (), {"sleep": sleep})

    def run() -> None:
        with suppress(SystemExit):
            engine.main(0)

    runner = threading.Thread(target=run, daemon=True)
    runner.start()
    yield chosen
    ended.set()
    runner.join()


async def values_of(url: str) -> list[dict[str, Any]]:
    values: Any = (await status_of(url))["values"]
    return list(values)


async def test_a_program_reads_the_engine_and_asks_it_for_torque(port: int) -> None:
    text = FILE.read_text().replace("25541", str(free_port()))
    text = text.replace("127.0.0.1}", f"127.0.0.1, status: {{listen: 'http://127.0.0.1:{free_port()}'}}}}", 1)
    text = text.replace("bitrate: 500000", f"bitrate: 500000, options: {{port: {port}}}")
    topology = loads(text, str(FILE))
    names = Names(known(topology))
    appliance = appliance_of(topology, "gw")
    loop = asyncio.get_running_loop()
    appliance.open(loop)
    hub = Hub("program")
    ear, link = Ear(hub), make_link(topology.buses["plant"].listen[0].url, "dial")
    link.open(hub, loop)
    try:
        await until(lambda: len(hub.pipes) == 2)

        def heard(pattern: str, data: str) -> bool:
            """Say what is wanted again, as a program does, and tell whether the engine said this."""
            ear.say(message("engine/Command/Demand", b"40"))
            found = [unpack(one) for one in ear.heard]
            return any(names.show(one.tokens) == pattern and one.data == data.encode() for one in found)

        await until(lambda: heard("engine/Engine/Torque", "40") and heard("engine/Gearbox/Gear", "Drive"))
        assert heard("engine/Engine/Speed", "1000")
        shown = {row["pattern"]: row for row in await values_of(appliance.page.url)}
        speed = {key: shown["engine/Engine/Speed"][key] for key in ("data", "unit", "number", "low", "high")}
        assert speed == {"data": "1000", "unit": "rpm", "number": 1000, "low": 0, "high": 16383.75}
        scraped = (await get(appliance.page.url, "/metrics")).body.decode()
        assert 'buscoupler_value{on="plant",pattern="engine/Engine/Speed",unit="rpm"} 1000.0' in scraped
        assert not any(unpack(one).tokens[:2] == pattern_of("engine/Command") for one in ear.heard)
    finally:
        link.close()
        appliance.close()
