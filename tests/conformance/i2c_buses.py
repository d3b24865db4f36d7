"""Makers of I2C links: in memory, and on the kernel's i2c-stub."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bridges.media.i2c.adapter import open_adapter
from bridges.media.i2c.mailbox_segments import CONTROLLER_CTL
from bridges.media.i2c.mailbox_target import Target
from bridges.media.i2c.memory import MemoryAdapter
from bridges.simulate import I2cTarget
from tests.bridges.support import frame
from tests.conformance.pair import Maker, Pair, Side
from tests.helpers.links import i2c_link
from tests.helpers.peers import until

_RETRY: dict[str, Any] = {"retry_min_s": 0.01, "retry_max_s": 0.1}
_LOSS = "test_a_loss_is_counted_and_has_a_reason"
_GARBAGE = "test_garbage_then_the_next_frame_but_one_at_the_latest"


def i2c(_: Path, clogged: bool = False) -> Pair:
    """Make a pair on the memory adapter, called from the link's thread like the kernel's."""
    memory = MemoryAdapter([0x42], blocks=True)
    target = I2cTarget(memory, 0x42)
    limits = {"queue_bytes": 16384 if clogged else 1 << 20, "poll_ms": 1, **_RETRY}
    return i2c_pair(memory, target, Side("near", partial(i2c_link, 1, [0x42], adapter=memory.open, **limits)))


def i2c_pair(adapter: Any, target: I2cTarget, near: Side) -> Pair:
    """Make a controller and one target, at 0x42, with the faults that a target can have."""
    far = Side("far")
    target.mailbox.queue_bytes = 1 << 20
    target.join(far.hub, asyncio.get_running_loop())
    near.open()

    def pipe() -> Any:
        link: Any = near.link
        return link.targets[0x42]

    async def cut() -> None:
        read, left = adapter.read_i2c_block_data, iter(range(60))  # a part of its more than 100 segments

        def fail_in_the_middle(address: int, register: int, length: int) -> list[int]:
            if next(left, None) is None and 0x42 in adapter.targets:
                target.reset()
                target.unplug()
            return list(read(address, register, length))

        adapter.read_i2c_block_data = fail_in_the_middle
        far.say(frame(3000))
        await until(lambda: pipe().state == "absent")

    async def mend() -> None:
        del adapter.read_i2c_block_data
        target.plug()

    def clog() -> None:
        target.clogged = True

    def ready() -> bool:
        return bool(pipe().state == "up")

    return Pair(near, far, clog, cut=cut, mend=mend, ready=ready, closers=[target.close])


_STUB = 0x42


def stub() -> int | None:
    """Return the number of i2c-stub's adapter."""
    for name in sorted(Path("/sys/class/i2c-adapter").glob("i2c-*/name")):
        if "stub" in name.read_text():
            return int(name.parent.name.removeprefix("i2c-"))
    return None


class StubMemory:
    """The far end of i2c-stub, which is only memory: a target's mailbox in it, served every millisecond."""

    def __init__(self, number: int) -> None:
        self.targets, self.hung = {_STUB: Target()}, set[int]()
        self.on_message: Callable[[int, bytes], None] = lambda address, message: None
        self.left = 0  # reads of the memory until this target dies; 0: never
        self._adapter, self._loop = open_adapter(number), asyncio.get_running_loop()
        self._handle = self._loop.call_soon(self._serve)

    def send(self, address: int, message: bytes) -> bool:
        return self.targets[address].send(message)

    def _serve(self) -> None:
        self._handle = self._loop.call_later(0.001, self._serve)
        if _STUB in self.hung:
            return
        target, adapter = self.targets[_STUB], self._adapter
        # the control byte first: a new one means that the other bytes are complete
        ctl = adapter.read_i2c_block_data(_STUB, CONTROLLER_CTL, 1)
        if ctl[0] != target.memory[CONTROLLER_CTL]:
            target.put(0, bytes([*adapter.read_i2c_block_data(_STUB, 0, CONTROLLER_CTL), *ctl]))
        for message in target.poll(self._loop.time()):
            self.on_message(_STUB, message)
        self._die_in_time(target)
        for register, data in target.changes():
            adapter.write_i2c_block_data(_STUB, register, list(data))

    def _die_in_time(self, target: Target) -> None:
        if self.left:
            self.left -= 1
            if not self.left:
                target.boot()
                self.hung.add(_STUB)

    def close(self) -> None:
        self._handle.cancel()
        self._adapter.close()


def i2c_stub(_: Path, clogged: bool = False) -> Pair:
    """Make a pair on the kernel's i2c-stub, whose memory answers even if the target has died."""
    number = stub()
    assert number is not None
    memory: Any = StubMemory(number)
    limits = {"queue_bytes": 16384 if clogged else 1 << 20, "poll_ms": 1, **_RETRY}
    near = Side("near", partial(i2c_link, number, [_STUB], **limits))
    pair = i2c_pair(memory, I2cTarget(memory, _STUB), near)

    def state() -> Any:
        link: Any = near.link
        return link.targets[_STUB].state

    async def cut() -> None:
        memory.left = 40  # reads, of more than 100
        pair.far.say(frame(3000))
        await until(lambda: state() == "stalled")

    async def mend() -> None:
        memory.hung.clear()

    pair.cut, pair.mend = cut, mend
    pair.closers.append(memory.close)
    return pair


def no_stub() -> str:
    """Return why i2c-stub cannot be used; "" if it can."""
    return "" if stub() is not None else "no i2c-stub: tests/kernel starts a machine that has it"


I2C_LEFT_OUT = {
    _LOSS: "the adapter stays: a lost one is in tests/bridges/media/i2c",
    _GARBAGE: "a target's 64 bytes hold no stream; flipped bits: tests/bridges/media/i2c",
}
MAKERS = [
    Maker("i2c", 30 - 4, i2c, partial(i2c, clogged=True), left_out=I2C_LEFT_OUT),
    Maker(
        "i2c-stub",
        30 - 4,
        i2c_stub,
        partial(i2c_stub, clogged=True),
        window=8,
        token_step=17,  # in emulation each takes seconds; above, all are tried
        share=0.25,
        left_out=I2C_LEFT_OUT,
        missing=no_stub,
    ),
]
