"""A CAN link by a database, with a stand-in for the kernel: what the translator says itself leaves, too."""

from asyncio import get_running_loop
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bridges.items import EXTENDED
from bridges.media.can.medium import Can
from bridges.media.can.socketcan import pack_frame, unpack_frame
from bridges.media.can.spoken import CanSpoken
from bridges.protocols.dbc.j1939 import claim
from bridges.protocols.dbc.protocol import Dbc
from bus.hub import Hub
from tests.bridges.media.can.can_kernel import Kernel
from tests.bridges.protocols.dbc.dbc_support import CAR, TRUCK, written
from tests.bridges.protocols.spoken_support import message, told
from tests.bridges.support import recorder, say
from tests.helpers.peers import until


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Kernel:
    made = Kernel(tmp_path)
    monkeypatch.setattr("bridges.media.can.raw.bound", made.open)
    monkeypatch.setattr("bridges.media.can.interfaces._NET", tmp_path)
    return made


@contextmanager
def link_on(hub: Hub, record: Dbc) -> Iterator[CanSpoken]:
    link: Any = Can(channel="fake0").speaking(record, retry_min_s=0.01)
    link.open(hub, get_running_loop())
    try:
        yield link
        assert link.stats.balance() == 0
    finally:
        link.close()


def sent_by(kernel: Kernel) -> list[tuple[int, str]]:
    found = [unpack_frame(raw) for raw in kernel.wire]
    return [(frame[0], bytes(frame[1]).hex()) for frame in found if frame is not None]


async def test_a_value_waits_until_the_address_is_claimed(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim, "WAIT_S", 0.03)
    path = str(written(tmp_path, TRUCK))
    record = Dbc(file=path, root=("t",), send=("Demand",), address=128, name=5, initial={"Control": 1})
    hub = Hub()
    heard = recorder(hub)
    with link_on(hub, record) as link:
        await until(lambda: link.state == "up")
        say(hub, heard, message("t/Demand/128/Wanted", b"1000"))
        await until(lambda: link.stats.sent == 1)
        assert sent_by(kernel) == [
            (EXTENDED | 0x18EEFF80, "0500000000000000"),
            (EXTENDED | 0x0C000080, "fd401fffffffffff"),
        ]
        kernel.put(pack_frame((EXTENDED | 0x18EEFF80, bytes(8), 0)))
        await until(lambda: "is lost" in link.condition)
        say(hub, heard, message("t/Demand/128/Wanted", b"1000"))
        await until(lambda: link.stats.dropped == {"address lost": 1})
        assert heard.messages == []


async def test_a_cycle_goes_on_by_itself_and_what_others_say_comes_in(kernel: Kernel, tmp_path: Path) -> None:
    fast = CAR.replace("BO_ 1024 50;", "BO_ 1024 5;")
    initial = {"Mode": 0, "Checksum": 0}
    record = Dbc(
        file=str(written(tmp_path, fast)), root=("car",), send=("Command",), cycle=True, age_ms=60_000,
        initial=initial, fill={"AliveCounter": "counter"},
    )  # fmt: skip
    hub = Hub()
    heard = recorder(hub)
    with link_on(hub, record) as link:
        await until(lambda: link.state == "up")
        say(hub, heard, message("car/Command/Demand", b"1"))
        await until(lambda: len(kernel.wire) >= 4)
        assert [data for _, data in sent_by(kernel)][:4] == ["02000000", "02400000", "02800000", "02c00000"]
        kernel.put(pack_frame((0x200, bytes((3, 20)), 0)))
        await until(lambda: len(heard.messages) == 2)
        assert told(heard.messages, "car", "Gearbox", "Gear", "Oil") == [
            ("car/Gearbox/Gear", b"Drive"),
            ("car/Gearbox/Oil", b"20"),
        ]
