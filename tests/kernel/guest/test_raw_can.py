"""Raw frames on the kernel's CAN: cangen, cansend, canplayer and candump at both ends of a tunnel."""

import asyncio
from asyncio import StreamReader, get_running_loop
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bridges.media.can.listening import trouble
from bridges.media.can.medium import Can
from bridges.protocols.raw.protocol import Raw
from bus.hub import Hub
from bus.patch import join
from tests.bridges.protocols.spoken_support import message, told
from tests.bridges.support import recorder, say
from tests.helpers.peers import until
from tests.kernel.guest.support import PATIENCE_S, attach_pair, candump, cansend, ip, program

TUNNEL = Raw(root=("car",), send=("all",))
SENT = (
    "123#",
    "7FF#0102030405060708",
    "00000001#AA",
    "1FFFFFFF#R",
    "321#R4",
    "12345678##5" + "11" * 12,
    "100##0",
)


@contextmanager
def raw_link(hub: Hub, channel: str, record: Raw = TUNNEL, **options: Any) -> Iterator[Any]:
    fields = {"fd": channel.startswith("vcan"), "queue_bytes": 1 << 20, "age_ms": 60_000} | options
    link: Any = Can(channel=channel, **fields).speaking(record, retry_min_s=0.01)
    link.open(hub, get_running_loop())
    try:
        yield link
    finally:
        link.close()


@asynccontextmanager
async def tunnel() -> AsyncIterator[tuple[Any, Any]]:
    """A tunnel from vcan0 to vcan1, which it makes."""
    if not Path("/sys/class/net/vcan1").exists():
        ip("link", "add", "vcan1", "type", "vcan")
        ip("link", "set", "vcan1", "mtu", "72", "up")
    near, far = Hub("near"), Hub("far")
    patch, _ = join(near, far)
    with raw_link(near, "vcan0") as a, raw_link(far, "vcan1") as b:
        await until(lambda: a.state == b.state == "up", PATIENCE_S)
        yield a, b
    patch.close()


async def lines(stream: StreamReader, count: int) -> list[str]:
    """Return the frames of the next lines of candump, as it writes them."""
    read = [await asyncio.wait_for(stream.readline(), PATIENCE_S) for _ in range(count)]
    return [line.split()[2].decode() for line in read]


async def test_frames_of_every_kind_come_out_as_they_were() -> None:
    async with tunnel() as (a, b), candump("vcan0") as here, candump("vcan1") as there:
        for frame in SENT:
            await cansend("vcan0", frame)
        before, after = await lines(here, len(SENT)), await lines(there, len(SENT))
        assert after == before
        await cansend("vcan1", "456#00")
        assert await lines(here, 1) == ["456#00"]
        assert a.stats.rejected == b.stats.rejected == {}


async def test_what_cangen_makes_crosses_in_order_once(tmp_path: Path) -> None:
    count = 300
    async with tunnel() as (a, b), candump("vcan0") as here, candump("vcan1") as there:
        words = ("cangen", "vcan0", "-g", "2", "-m", "-n", str(count))
        async with program(*words) as generator:
            assert await asyncio.wait_for(generator.wait(), PATIENCE_S) == 0
        before = await lines(here, count)
        assert await lines(there, count) == before
        log = tmp_path / "log"
        log.write_text("".join(f"({n / 100:.6f}) vcan0 {frame}\n" for n, frame in enumerate(before[:100])))
        async with program("canplayer", "-I", str(log)) as player:
            assert await asyncio.wait_for(player.wait(), PATIENCE_S) == 0
        assert await lines(there, 100) == before[:100]
        await until(lambda: b.stats.sent == count + 100, PATIENCE_S)
        assert a.stats.rejected == b.stats.rejected == b.stats.dropped == {}


async def test_the_kernel_filters_by_lists() -> None:
    hub = Hub()
    heard = recorder(hub)
    record = Raw(root=("car",), receive=("0x100-0x1ff", "0x18FEF100x", "0x200r"), send=(0x321,))
    with raw_link(hub, "vcan0", record) as link:
        await until(lambda: link.state == "up", PATIENCE_S)
        for frame in ("0FF#", "100#", "200#", "200#R", "18FEF100#", "18FEF101#", "1FF#"):
            await cansend("vcan0", frame)
        await until(lambda: len(heard.messages) == 4, PATIENCE_S)
        assert [pattern for pattern, _ in told(heard.messages, "car", "car/0x")] == [
            "car/0x100", "car/0x200r", "car/0x18fef100x", "car/0x1ff"
        ]  # fmt: skip
        assert link.stats.rejected == {}, "the kernel kept the others away"
        say(hub, heard, message("car/0x321", b"x"), message("car/0x322", b"x"))
        await until(lambda: link.stats.sent == 1, PATIENCE_S)
        assert link.stats.dropped == {"not sent here": 1}


async def test_a_controller_that_acknowledges_is_refused_to_who_only_listens() -> None:
    attach_pair()
    assert "can0 acknowledges frames" in trouble("can0")
    assert trouble("vcan0") == ""
    with raw_link(Hub(), "can0", Raw(root=("car",)), listen_only=True) as link:
        await until(lambda: "listen-only on" in link.fault, PATIENCE_S)
    ip("link", "set", "can0", "down")
    async with program("ip", "link", "set", "can0", "type", "can", "listen-only", "on") as setting:
        refused = await asyncio.wait_for(setting.wait(), PATIENCE_S)
    if refused:
        pytest.skip("this driver cannot only listen")
    ip("link", "set", "can0", "up")
    assert trouble("can0") == ""
    ip("link", "set", "can0", "down")
    ip("link", "set", "can0", "type", "can", "listen-only", "off")
