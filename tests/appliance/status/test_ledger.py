"""The ledger as text: totals by link, also of peers that have left; and what a process waits for."""

import asyncio

import pytest

from appliance.process.serve import drain
from appliance.status.ledger import ledger, say_ledger
from bridges.bridge import Bridge
from bridges.policy import Policy
from bus.hub import Hub
from bus.patch import join
from tests.bridges.support import FRAME, RecordingPipe, recorder, say


def plant() -> tuple[Hub, Bridge]:
    """Return a bus and a bridge that 403 frames have crossed; their sender has left."""
    bus, bridge = Hub("plant"), Bridge("fridge", 7, sequence=0)
    join(bus, bridge.side("0 bus", Policy(deny_out=[[0x11223344, 1]])), bridge.name)
    recorder(bridge.side("1 can"), "can0")
    sender = RecordingPipe("tcp://127.0.0.1:43211 from 127.0.0.1:51234", "tcp://127.0.0.1:43211")
    bus.attach(sender)
    say(bus, sender, *[FRAME] * 403)
    say(bus, sender, b"rubbish")
    bus.detach(sender)
    return bus, bridge


def test_each_link_has_one_line_with_its_totals() -> None:
    bus, bridge = plant()
    text = ledger([Hub("empty"), bus, bridge], [])
    assert text.splitlines() == [
        "ledger of 4 links: balanced",
        "  plant",
        "    fridge: in 0, out 404, dropped 0; 1 live",
        "    tcp://127.0.0.1:43211: in 404, out 0, dropped 0",
        "  fridge",
        "    0 bus/fridge: in 403, out 0, dropped 0, rejected 1 malformed; 1 live",
        "    1 can: in 0, out 403, dropped 0; 1 live",
    ]


def test_a_ledger_of_many_peers_fits_80_columns() -> None:
    bus = Hub("plant")
    for number in range(1000):
        peer = RecordingPipe(
            f"tcp://192.168.100.200:54321 from 10.0.0.1:{number}", "tcp://192.168.100.200:54321"
        )
        bus.attach(peer)
        say(bus, peer, b"x", b"y")
        peer.stats.offered, peer.stats.dropped = peer.stats.offered + 1, {"peer gone": 1}
        bus.lend(peer, 1)
        bus.detach(peer)
    text = ledger([bus], [])
    assert max(map(len, text.splitlines())) <= 80
    assert "in 2000, out 0, dropped 1000 peer gone" in text


def test_a_ledger_that_does_not_balance_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    bus, bridge = plant()
    assert say_ledger([bus, bridge]) == 0
    bridge.pipes[1].stats.sent -= 1
    assert say_ledger([bus, bridge]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "ledger of 4 links: does NOT balance" in lines
    assert "  fridge | fridge/1 can/can0: 1 of 403 offered are unaccounted for" in lines


async def test_a_process_waits_also_for_what_is_queued_behind_a_port() -> None:
    bus, bridge = plant()

    class Parts:
        def open(self, loop: asyncio.AbstractEventLoop) -> None: ...
        def close(self) -> None: ...
        def hubs(self) -> list[Hub]:
            return [bus, bridge]

    behind = bridge.sides[1].pipes[0].stats
    behind.queued = 1
    asyncio.get_running_loop().call_later(0.01, setattr, behind, "queued", 0)
    await drain(Parts(), limit_s=20.0)
    assert behind.queued == 0
