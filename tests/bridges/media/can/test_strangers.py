"""Frames of others on a bus of TMQ: told once as a state, which ends when a message comes."""

import logging
from asyncio import get_running_loop
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import can
import pytest

from bridges.items import ERROR, EXTENDED, FD, REMOTE
from bridges.media.can import strangers
from bridges.media.can.codec import can_id
from bridges.media.can.medium import Can
from bridges.media.can.socketcan import pack_frame
from bridges.media.can.strangers import IDS_MAX, Strangers, look, strange
from bridges.protocols.dbc.protocol import Dbc
from bridges.protocols.raw.protocol import Raw
from bus.hub import Hub
from bus.wire.batch import from_payloads
from tests.bridges.support import MESSAGE
from tests.helpers.links import can_link
from tests.helpers.peers import until
from tests.helpers.ports import free_channel

SUBJECT = 0x1234
OURS = can_id(SUBJECT, 5) | EXTENDED


async def test_they_are_told_once_after_some_seconds_and_end_with_a_message(
    clock: Callable[[float], None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    watch = Strangers("can:x", "", (SUBJECT,))
    watch.open(get_running_loop())
    for number in range(31):
        watch.hear([0x100 + number, 0x18FEF100 | EXTENDED, 0x100])
    assert watch.words.endswith("?") is False
    clock(4.0)
    await until(lambda: bool(watch.words))
    assert watch.words == (
        "93 CAN frames, none a TMQ frame: 32 other ids (0x100, 0x101, 0x102, 0x103, ...): `protocol: raw`?"
    )
    watch.hear([0x100] * 5000)
    watch.hear([], 1)
    assert (watch.words, watch.is_waiting) == ("", False)
    assert [record.message.count("none a TMQ frame") for record in caplog.records] == [1, 1]


async def test_where_messages_come_nothing_is_told_and_ids_are_bounded(
    clock: Callable[[float], None],
) -> None:
    watch = Strangers("can:x", "", (SUBJECT,))
    watch.open(get_running_loop())
    watch.hear([1, 2, 3], 1)
    assert not watch.is_waiting
    watch.open(get_running_loop())
    watch.hear(range(10_000))
    clock(4.0)
    await until(lambda: bool(watch.words))
    assert f"at least {IDS_MAX} other ids" in watch.words
    watch.revise(False)
    assert (watch.words, watch.is_waiting) == ("", False)


async def test_a_link_has_them_as_its_condition_until_a_message_comes(clock: Callable[[float], None]) -> None:
    channel, hub, far = free_channel(), Hub(), Hub()
    link, other = (can_link("virtual", channel, node, retry_min_s=0.01) for node in (1, 2))
    with can.Bus(channel=channel, interface="virtual") as device, closing(link), closing(other):
        link.open(hub, get_running_loop())
        await until(lambda: link.state == "up")
        for number in (0x181, 0x281):
            device.send(can.Message(arbitration_id=number, data=b"\1", is_extended_id=False))
        await until(lambda: link.stats.rejected.get("foreign") == 2)
        clock(4.0)
        await until(lambda: link.condition.endswith("?"))
        assert link.condition == (
            "2 CAN frames, none a TMQ frame: 2 other ids (0x181, 0x281): `protocol: raw`?"
        )
        other.open(far, get_running_loop())
        await until(lambda: other.state == "up")
        far.publish(from_payloads([MESSAGE]))
        await until(lambda: not link.condition.endswith("?"))


def test_strange_is_all_but_the_data_frames_of_the_subject() -> None:
    frames = [
        (OURS, b"", 0),
        (0x123, b"", 0),
        (OURS ^ 1 << 8, b"", FD),
        (OURS | REMOTE, b"", 0),
        (ERROR, b"", 0),
    ]
    assert strange(frames, (SUBJECT,)) == [0x123, OURS ^ 1 << 8, OURS | REMOTE]


class Line:
    """A socket of the kernel that has some frames, and then nothing."""

    def __init__(self, *identifiers: int) -> None:
        self.frames = [pack_frame((one, b"\1", 0)) for one in identifiers]

    def __enter__(self) -> "Line":
        return self

    def __exit__(self, *_: object) -> None:
        self.frames = []

    def settimeout(self, seconds: float) -> None:
        assert 0 < seconds <= strangers.LOOK_S

    def recv(self, _: int) -> bytes:
        if not self.frames:
            raise TimeoutError
        return self.frames.pop(0)


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return what makes the next sockets have frames with these identifiers."""
    return lambda *identifiers: monkeypatch.setattr(
        strangers, "_unfiltered", lambda interface, subject: Line(*identifiers)
    )


def test_a_look_ends_after_some_frames(line: Callable[..., None]) -> None:
    line(OURS, 7, 8)
    assert look("can0", (SUBJECT,)) == [7, 8]
    line(*range(1000))
    assert look("can0", (SUBJECT,)) == list(range(256))


async def test_an_interface_with_a_filter_is_looked_at_until_a_message_comes(
    clock: Callable[[float], None], line: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    line()

    def count(interface: str, subject: Sequence[int]) -> list[int]:
        looked.append(interface)
        return look(interface, subject)

    monkeypatch.setattr(strangers, "look", count)
    watch = Strangers("can:can0", "can0", (SUBJECT,))
    watch.open(get_running_loop())
    clock(3.1)
    await until(lambda: looked == ["can0"])
    line(7, 8, 9)
    await until(lambda: watch.is_due)
    clock(61.0)
    await until(lambda: len(looked) == 2 and watch.is_due)
    clock(4.0)
    await until(lambda: bool(watch.words))
    assert "3 other ids (0x007, 0x008, 0x009): " in watch.words
    for _ in range(5):
        clock(60.0)
        await until(lambda: True)
    assert len(looked) == 2
    watch.close()


async def test_an_interface_that_cannot_be_opened_is_looked_at_again(
    clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []

    def fail(*_: object) -> list[int]:
        looked.append("")
        raise OSError("gone")

    monkeypatch.setattr(strangers, "look", fail)
    watch = Strangers("can:can0", "can0", (SUBJECT,))
    watch.open(get_running_loop())
    for count in range(1, 4):
        clock(61.0)
        await until(lambda count=count: len(looked) == count and watch.is_due)  # type: ignore[misc]
    watch.close()
    assert not watch.is_due


TRUCK = """VERSION ""
BU_: ECU
BO_ 256 Engine: 8 ECU
 SG_ Speed : 0|16@1+ (1,0) [0|0] "" ECU
BO_ 2364539905 EEC1: 8 ECU
 SG_ EngineSpeed : 24|16@1+ (0.125,0) [0|8031.875] "rpm" ECU
"""
EEC1 = 0x0CF00400


@pytest.mark.parametrize(
    ("settings", "frame", "words"),
    [
        ({}, (0x200, False), "none a message of {file}: 1 other ids (0x200): another database?"),
        ({}, (EEC1, True), "none a message of {file}: 1 other ids (0xcf00400x): J1939: `j1939: true`?"),
        ({"j1939": True}, (EEC1 ^ 0x100, True), "another database?"),
        ({"j1939": True}, (EEC1, True), ""),
        ({}, (0x100, False), ""),
        ({"receive": ()}, (0x200, False), ""),
        (None, (0x200, False), "none one of `receive`: 1 other ids (0x200): is one missing in `receive`?"),
        (None, (0x100, False), ""),
        (None, (0x300, False), ""),
    ],
)
async def test_a_protocol_that_understands_no_frame_says_so(
    clock: Callable[[float], None],
    tmp_path: Path,
    settings: dict[str, Any] | None,
    frame: tuple[int, bool],
    words: str,
) -> None:
    file = tmp_path / "truck.dbc"
    file.write_text(TRUCK)
    record = Raw(receive=(0x100,), send=(0x300,)) if settings is None else Dbc(file=str(file), **settings)
    channel = free_channel()
    medium = Can(channel=channel, interface="virtual", queue_bytes=1 << 20)
    link: Any = medium.speaking(record)
    with can.Bus(channel=channel, interface="virtual") as device, closing(link):
        link.open(Hub(), get_running_loop())
        await until(lambda: link.state == "up")
        for _ in range(3):
            device.send(can.Message(arbitration_id=frame[0], data=bytes(8), is_extended_id=frame[1]))
        await until(lambda: link.stats.items == 3)
        clock(4.0)
        if words:
            await until(lambda: link.condition.endswith("?"))
        assert link.condition.endswith(words.format(file=file) or "unknown")
