"""What a gateway logs reaches the buses that `logs` names, once, also from a process without the bus."""

import asyncio
import logging
from pathlib import Path

from bus.events import Event, read_event
from bus.logs import Line, read_line
from bus.wire.batch import from_payloads
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.devices.tap.tap_support import member
from tests.helpers.appliances import appliance_of, reloaded
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

TEXT = """\
name: two
gateways: {{gw: }}
buses:
  hall: {{on: gw, listen: ["tcp://127.0.0.1:{0}"]}}
  yard: {{on: gw, listen: ["tcp://127.0.0.1:{1}"]}}
bridges:
  joint: {{on: gw, join: [{{bus: hall}}, {{bus: yard}}]}}
{more}
"""
log = logging.getLogger("buscoupler.tests")


def lines(messages: list[bytes]) -> list[Line]:
    return [line for line in map(read_line, messages) if line is not None]


def events(messages: list[bytes]) -> list[Event]:
    return [event for event in map(read_event, messages) if event is not None]


async def test_a_warning_is_heard_once_where_logs_say_so_and_bridges_keep_it_in() -> None:
    ports = free_port(), free_port()
    appliance = appliance_of(loads(TEXT.format(*ports, more="logs: hall"), "t.yaml"), "gw")
    appliance.open(asyncio.get_running_loop())
    try:
        async with (
            member(f"tcp://127.0.0.1:{ports[0]}") as (hub, hall),
            member(f"tcp://127.0.0.1:{ports[1]}") as (_, yard),
        ):
            log.warning("a valve is stuck")
            await until(lambda: lines(hall.messages) != [])
            assert [(line.source, line.text) for line in lines(hall.messages)] == [("gw", "a valve is stuck")]
            reloaded(appliance, loads(TEXT.format(*ports, more=""), "t.yaml"))
            log.warning("a valve is loose")
            appliance.monitor.scan(0)
            last = pack(PUB, Pattern("last"))
            hub.publish(from_payloads([last]))
            await until(lambda: last in yard.messages)
            assert len(lines(hall.messages)) == 1
            assert lines(yard.messages) == []
    finally:
        appliance.close()


async def test_a_process_without_the_bus_says_it_there_by_the_local_socket(tmp_path: Path) -> None:
    ports, loop = (free_port(), free_port()), asyncio.get_running_loop()
    text = TEXT.format(*ports, more="events: hall\nlogs: hall")
    bus = appliance_of(loads(text, "t.yaml"), "gw", ["hall", "yard"], tmp_path)
    bridge = appliance_of(loads(text, "t.yaml"), "gw", ["joint"], tmp_path)
    bus.open(loop)
    bridge.open(loop)
    try:
        async with member(f"tcp://127.0.0.1:{ports[0]}") as (_, hall):
            event = bridge.monitor.record("takeover", "joint", "on purpose")
            await until(lambda: event in events(hall.messages))
            assert events(hall.messages).count(event) == 1
            log.warning("both processes of this test log it")
            await until(lambda: len(lines(hall.messages)) == 2)
            await until(lambda: "said on hall" in [hub.name for hub in bridge.hubs() if not hub.pipes])
    finally:
        bridge.close()
        bus.close()
