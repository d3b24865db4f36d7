"""CAN to trunk to CAN: every frame once, in order, and nothing comes back."""

import random
from asyncio import get_running_loop
from pathlib import Path
from typing import Any

import pytest

from bridges.bridge import Bridge
from bridges.items import EXTENDED, FD, REMOTE, SWITCH, CanFrame
from bridges.media.can.medium import Can
from bridges.media.can.socketcan import pack_frame
from bridges.policy import Policy
from bridges.protocols.raw.protocol import Raw
from bus.patch import join
from tests.helpers.peers import until
from tests.rigs.can_packets import install
from tests.rigs.can_wire import Bus, Wire


async def test_a_tunnel_over_a_trunk_is_exact_both_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(lambda channel, **_: Bus(tmp_path, channel), monkeypatch.setattr)
    loop, trunk = get_running_loop(), Policy(trunk=True)
    heard: dict[str, list[bytes]] = {"near": [], "away": []}
    wires = {name: Wire(tmp_path / name, loop, heard[name].append) for name in heard}
    bridges = [Bridge(name, number) for number, name in enumerate(wires, 1)]
    sides = [bridge.side("can") for bridge in bridges]
    join(bridges[0].side("trunk", trunk), bridges[1].side("trunk", trunk))
    record = Raw(root=("car",), send=("all",))
    links: list[Any] = [
        Can(channel=name, fd=True, age_ms=60_000, queue_bytes=1 << 24).speaking(record) for name in wires
    ]
    for link, side in zip(links, sides, strict=True):
        link.open(side, loop)
    await until(lambda: all(link.state == "up" for link in links) and all(wires.values()))
    said = {name: [pack_frame(one) for one in frames(seed)] for seed, name in enumerate(wires)}
    for here, there in zip(said["near"], said["away"], strict=True):
        wires["near"].say(here)
        wires["away"].say(there)
    await until(lambda: all(len(found) >= 2000 for found in heard.values()))
    assert heard == {"near": said["away"], "away": said["near"]}
    await until(lambda: all(link.stats.sent == 2000 for link in links))
    assert all(link.stats.rejected == link.stats.dropped == {} for link in links)
    for closing in (*links, *wires.values()):
        closing.close()


def frames(seed: int) -> list[CanFrame]:
    """Return frames of all kinds, many of them equal. An id has one sender, so each end has its own."""
    chance = random.Random(seed)
    kinds: tuple[CanFrame, ...] = (
        (0x123, b"", 0), (0x123, b"12345678", 0), (EXTENDED | 0x18FEF100, b"abc", 0),
        (REMOTE | 0x7, bytes(3), 0), (0x123, b"12345678", FD), (EXTENDED | 5, bytes(64), FD | SWITCH),
        (0x123, b"12345678", 9 << 4), (0x124, b"12345678", 15 << 4), (REMOTE | 0x9, bytes(8), 12 << 4),
    )  # fmt: skip
    chosen = [chance.choice(kinds) for _ in range(2000)]
    return [(identifier ^ seed << 4, data, marks) for identifier, data, marks in chosen]
