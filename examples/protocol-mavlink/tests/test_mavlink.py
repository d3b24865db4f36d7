"""MAVLink messages of pymavlink's own peer cross, both ways, over a serial line and as datagrams."""

import asyncio
import json
import math
import os
import pty
import tty
from typing import Any

import pytest
from buscoupler_mavlink.protocol import Mavlink
from pymavlink import mavutil
from pymavlink.dialects.v20 import ardupilotmega, common

from bridges.media.uart.medium import Uart
from bridges.protocols.translator import Wire
from bus.hub import Hub
from bus.ledger import Stats
from bus.wire.frame import pack, unpack
from bus.wire.pattern import Pattern, token
from tests.bridges.support import recorder, say
from tests.helpers.peers import until

RECORD = Mavlink(send=("COMMAND_LONG",))


def peer() -> Any:
    return common.MAVLink(None, 1, 1)


def heartbeat(sender: Any) -> bytes:
    packed = bytes(sender.heartbeat_encode(2, 3, 81, 0, 4).pack(sender))
    sender.seq = (sender.seq + 1) & 0xFF
    return packed


def translator() -> Any:
    return RECORD.translator(Wire("test", "bytes", Stats()))


def test_messages_become_frames_however_the_stream_is_cut() -> None:
    made, sender = translator(), peer()
    stream = b"noise!" + heartbeat(sender) + heartbeat(sender)
    found = [one for at in range(len(stream)) for one in made.receive([stream[at : at + 1]], 0.0)]
    assert [unpack(one).tokens for one in found] == [Pattern("mav", 1, "HEARTBEAT")] * 2
    assert json.loads(unpack(found[0]).data)["autopilot"] == 3
    assert "no message" in made.wire.stats.rejected
    assert "gap" not in made.wire.stats.rejected


def test_a_gap_in_the_sequence_is_counted() -> None:
    made, sender = translator(), peer()
    sender.seq = 254
    first = heartbeat(sender)
    made.receive([first], 0.0)
    lost = [heartbeat(sender) for _ in range(3)]
    made.receive([heartbeat(sender)], 0.0)
    assert made.wire.stats.rejected == {"gap": 3}
    assert made.receive([lost[2]], 0.0)
    assert made.receive([heartbeat(sender)], 0.0)
    assert made.wire.stats.rejected == {"gap": 3, "order": 1}
    sender.seq = 250  # it began anew
    assert len(made.receive([heartbeat(sender) for _ in range(3)], 0.0)) == 3
    assert made.wire.stats.rejected == {"gap": 3, "order": 3}


@pytest.mark.parametrize("version", [1, 2])
def test_a_message_of_another_dialect_is_no_frame_and_no_gap(version: int) -> None:
    """It once was a frame of system 0 with its bytes as text, and the next message came behind a gap."""
    made, sender = translator(), ardupilotmega.MAVLink(None, 1, 1)
    stream = heartbeat(sender)
    other = ardupilotmega.MAVLink_ahrs_message(0, 0, 0, 0, 0, 0.5, 0)
    stream += bytes(other.pack(sender, force_mavlink1=version == 1))
    sender.seq += 1
    found = made.receive([stream + heartbeat(sender)], 0.0)
    assert [unpack(one).tokens for one in found] == [Pattern("mav", 1, "HEARTBEAT")] * 2
    assert made.wire.stats.rejected == {"unknown": 1}
    assert made.condition == "UNKNOWN_163 is not in dialect common"


def test_messages_of_another_dialect_in_turns_are_told_once() -> None:
    """Each of them once was a line in the log."""
    made, sender = translator(), peer()
    told = set[str]()
    for other in (
        ardupilotmega.MAVLink_ahrs_message(0, 0, 0, 0, 0, 0, 0),
        ardupilotmega.MAVLink_hwstatus_message(5, 0),
    ):
        made.receive([bytes(other.pack(sender))], 0.0)
        told.add(made.condition)
    assert told == {"UNKNOWN_163 is not in dialect common"}
    assert made.wire.stats.rejected == {"unknown": 2}


def test_what_looked_like_a_message_of_another_dialect_is_forgotten_when_good_ones_come() -> None:
    """Noise that looked like one was the condition for good."""
    made, sender = translator(), peer()
    noise = bytes(ardupilotmega.MAVLink_hwstatus_message(5, 0).pack(sender))
    made.receive([noise], 0.0)
    strange = made.condition
    assert strange
    made.receive([noise], 50.0)
    for now_s, told in ((1.0, strange), (59.0, strange), (109.0, strange), (110.0, ""), (111.0, "")):
        made.receive([heartbeat(sender)], now_s)
        assert made.condition == told
    made.receive([noise], 112.0)
    assert made.condition == strange


def test_a_dialect_has_its_messages_and_check_knows_which_there_are() -> None:
    made, sender = Mavlink(dialect="ardupilotmega").translator(Wire("test", "bytes", Stats())), peer()
    data = ardupilotmega.MAVLink_ahrs_message(0, 0, 0, 0, 0, 0.5, 0).pack(sender)
    assert [unpack(one).tokens for one in made.receive([bytes(data)], 0.0)] == [Pattern("mav", 1, "AHRS")]
    assert list(Mavlink(dialect="ardupilotmega").problems()) == []
    for absent in ("ardupilot", "common.v1", "no.such"):
        assert [one.text[:8] for one in Mavlink(dialect=absent).problems()] == ["dialect:"]
    wrong = Mavlink(send=("COMAND_LONG", "HEARTBEAT"))
    assert [one.text for one in wrong.problems()] == [
        'send: dialect common has no message COMAND_LONG; did you mean "COMMAND_LONG"?'
    ]


@pytest.mark.parametrize("kind", list(common.mavlink_map.values()), ids=lambda kind: kind.msgname)
def test_what_comes_can_be_sent_as_it_came(kind: Any) -> None:
    """Texts and what is no number once were refused, so no parameter could be set."""
    ends = {"float": math.nan, "double": math.nan, "uint64_t": 2**64 - 1, "int64_t": -(2**63), "char": b"AB"}
    sizes = dict(zip(kind.ordered_fieldnames, kind.array_lengths, strict=True))
    fields = dict[str, Any]()
    for name, type_ in zip(kind.fieldnames, kind.fieldtypes, strict=True):
        size = 0 if type_ == "char" else sizes[name]
        fields[name] = [ends.get(type_, 7)] * size if size else ends.get(type_, 7)
    sender = common.MAVLink(None, 255, 190)
    said = bytes(kind(**fields).pack(sender))
    made = Mavlink(send=(kind.msgname,)).translator(Wire("test", "bytes", Stats()))
    for came in made.receive([said], 0.0):
        assert made.send(came, 0.0).items == [said]
    assert made.wire.stats.rejected in ({}, {"oversize": 1})


def test_what_is_no_number_is_null_in_arrays_too() -> None:
    made, sender = translator(), peer()
    unknown = [float("nan"), *[0.0] * 20]
    said = sender.odometry_encode(
        1, 1, 12, 0, 0, float("nan"), [1, 0, 0, float("inf")], 0, 0, 0, 0, 0, 0, unknown, unknown
    )
    data = made.receive([bytes(said.pack(sender))], 0.0)[0]
    found = json.loads(unpack(data).data, parse_constant=pytest.fail)
    assert (found["z"], found["q"], found["pose_covariance"][:2]) == (None, [1, 0, 0, None], [None, 0])


def test_a_float_of_four_bytes_has_no_more_digits_than_it_needs() -> None:
    made, sender = translator(), peer()
    said = sender.attitude_encode(1, 0.1, -2.5e-8, 3.4e38, 1 / 3, 0, 0).pack(sender)
    found = json.loads(unpack(made.receive([bytes(said)], 0.0)[0]).data)
    assert [found[name] for name in ("roll", "pitch", "yaw", "rollspeed")] == [
        0.1,
        -2.5e-8,
        3.4e38,
        0.33333334,
    ]


def test_what_is_not_sent_leaves_no_number_out() -> None:
    made = translator()
    one, bad = (pack(1, Pattern("mav", 255, "COMMAND_LONG"), data) for data in (command(), b"{}"))
    sent = [made.send(message, 0.0) for message in (one, bad, bad, one)]
    told = peer().parse_buffer(b"".join(item for each in sent for item in each.items))
    assert [message.get_seq() for message in told] == [0, 1]


def command(**fields: Any) -> bytes:
    names = common.MAVLink_command_long_message.ordered_fieldnames
    return json.dumps(dict.fromkeys(names, 0) | fields).encode()


def test_only_what_the_file_lists_is_sent_and_only_whole() -> None:
    made = translator()
    good = pack(1, Pattern("mav", 255, "COMMAND_LONG"), command(command=400, param1=1))
    told = peer().parse_buffer(made.send(good, 0.0).items[0])
    assert (told[0].get_type(), told[0].command, told[0].get_srcSystem()) == ("COMMAND_LONG", 400, 255)
    assert made.send(pack(1, Pattern("mav", 255, "COMMAND_LONG"), b"{}"), 0.0).why == "malformed"
    assert made.send(pack(1, Pattern("mav", 255, "HEARTBEAT"), b"{}"), 0.0).why == "not sent here"


async def test_with_the_peer_of_pymavlink_on_a_serial_line() -> None:
    master, slave = pty.openpty()
    tty.setraw(slave)
    device = mavutil.mavlink_connection(os.ttyname(slave), baud=57600, source_system=7)
    line, other = pty.openpty()
    tty.setraw(line)
    tty.setraw(other)
    loop = asyncio.get_running_loop()
    loop.add_reader(master, lambda: os.write(line, os.read(master, 4096)))
    loop.add_reader(line, lambda: os.write(master, os.read(line, 4096)))
    hub = Hub()
    heard = recorder(hub)
    link = Uart(port=os.ttyname(other), baud=57600).speaking(RECORD)
    link.open(hub, loop)
    try:
        await until(lambda: link.state == "up")
        device.mav.heartbeat_send(2, 3, 81, 0, 4)
        await until(lambda: bool(heard.messages))
        assert unpack(heard.messages[0]).tokens == (token("mav"), 7, token("HEARTBEAT"))
        say(hub, heard, pack(1, Pattern("mav", 255, "COMMAND_LONG"), command(command=400)))
        got: list[Any] = []

        def received() -> bool:
            message = device.recv_match(type="COMMAND_LONG", blocking=False)
            got.extend([message] if message else [])
            return bool(got)

        await until(received)
        assert got[0].command == 400
    finally:
        link.close()
        loop.remove_reader(master)
        loop.remove_reader(line)
        device.close()
        for end in (master, slave, line, other):
            os.close(end)


@pytest.mark.parametrize("noise", [b"", b"\xfd" * 300, bytes(range(256)) * 4])
def test_noise_never_raises(noise: bytes) -> None:
    made = translator()
    made.receive([noise, noise], 0.0)
    assert made.end(0.0) == []
