"""The records of our media: their facts and what they take by default, as docs/ and the wire format say."""

from typing import Any

import pytest

from bridges.media import MEDIA
from bridges.media.can.medium import Can
from bridges.media.i2c.medium import I2c
from bridges.media.ieee802154.medium import Ieee802154
from bridges.media.medium import Medium, Taken
from bridges.media.multicast.medium import Multicast
from bridges.media.sp.medium import Sp
from bridges.media.tcp.medium import Tcp
from bridges.media.tmq.medium import Tmq
from bridges.media.uart.medium import Rs485, Uart
from bridges.media.udp.medium import Udp
from bus.confined import Confined
from bus.needs import Library, Listening, Lookup
from tests.helpers.kinds import has_each

CAN = Can(channel="can0")
I2C = I2c(bus=1, targets=(0x42, 0x43))
GROUP = Multicast(group="239.9.42.1", port=9943, interface="eth0")
RADIO = Ieee802154(interface="wpan0", pan=0xBEEF)
BUS = Sp(address="tcp://h:1")
STREAM = Tcp(host="h", port=9)
NETWORK = Tmq()
LINE = Uart(port="/dev/ttyS0")
PEER = Udp(host="h", port=9)
PAIR = Uart(port="/dev/ttyS0", rs485=Rs485(nodes=(1, 2)))
EVERY = {
    "can": CAN,
    "i2c": I2C,
    "ieee802154": RADIO,
    "multicast": GROUP,
    "url": BUS,
    "tcp": STREAM,
    "tmq": NETWORK,
    "uart": LINE,
    "udp": PEER,
}


def facts(medium: Medium) -> set[str]:
    named = {
        "deaf": medium.deaf,
        "named": medium.named,
        "opaque": medium.opaque,
        "plain": medium.plain,
        "selective": medium.selective,
        "shared": medium.shared,
        "signs": medium.signs,
    }
    return {name for name, holds in named.items() if holds}


def test_this_has_each_medium() -> None:
    has_each("EVERY", EVERY, MEDIA.ours())


@pytest.mark.parametrize(
    ("medium", "expected"),
    [
        (CAN, {"shared", "signs"}),
        (I2C, {"deaf"}),
        (GROUP, {"shared", "signs"}),
        (RADIO, {"shared", "signs"}),
        (BUS, {"opaque", "signs"}),
        (STREAM, {"deaf"}),
        (NETWORK, {"selective", "plain"}),
        (LINE, {"signs"}),
        (PEER, {"deaf"}),
        (Udp(host="10.0.0.255", port=9, broadcast=True), {"deaf", "shared"}),
        (PAIR, {"shared", "signs"}),
    ],
    ids=lambda value: value.label() if isinstance(value, Medium) else "",
)
def test_facts(medium: Medium, expected: set[str]) -> None:
    assert facts(medium) == expected


def test_what_a_tap_records_of_a_wire_with_a_protocol_and_with_tmq() -> None:
    items = {one: (medium.wire_items(True), medium.wire_items(False)) for one, medium in EVERY.items()}
    assert items == {
        "can": ("frames", "frames"), "i2c": ("registers", None), "ieee802154": (None, "datagrams"),
        "multicast": (None, "datagrams"), "url": (None, None), "tcp": ("bytes", None), "tmq": (None, None),
        "uart": ("bytes", "bytes"), "udp": ("datagrams", "datagrams"),
    }  # fmt: skip
    assert not any(medium.hears_only for medium in EVERY.values())


@pytest.mark.parametrize(
    ("interface", "hops", "confined"),
    [
        ("eth0", 1, None),
        ("eth0", 0, Confined("machine", "hops is 0", stated=True)),
        ("lo", 1, Confined("machine", "lo is the machine's own interface")),
        ("127.0.0.1", 1, Confined("machine", "127.0.0.1 is the machine's own interface")),
    ],
)
def test_a_group_reaches_other_machines_by_hops_on_an_interface_to_them(
    interface: str, hops: int, confined: Confined | None
) -> None:
    group = Multicast(group="239.9.42.1", port=9943, interface=interface, hops=hops)
    assert group.confined == confined


@pytest.mark.parametrize("medium", EVERY.values(), ids=EVERY)
def test_a_seal_takes_18_bytes_and_needs_clocks_that_differ_by_less_than_60_s(medium: Medium) -> None:
    sealed = medium in (CAN, GROUP, RADIO, LINE)
    assert (medium.seal_bytes, medium.clock_s) == ((18, 60.0) if sealed else (0, 0.0))


@pytest.mark.parametrize("medium", EVERY.values(), ids=EVERY)
def test_of_most_media_the_capacity_is_known_only_with_settings(medium: Medium) -> None:
    assert (medium.seconds(100, False) is None) == (medium not in (I2C, RADIO, LINE))
    assert bool(medium.unjudged()) == (medium is CAN)


@pytest.mark.parametrize(
    ("medium", "defaults"),
    [
        (
            CAN,
            {"fd": False, "bitrate_switch": True, "subject": 0x1234, "age_ms": None, "queue_bytes": 65_536},
        ),
        (I2C, {"poll_ms": 5, "clock_hz": 100_000, "queue_bytes": 65_536}),
        (GROUP, {"hops": 1, "datagram_bytes": 1400, "queue_bytes": 1_048_576}),
        (RADIO, {"datagram_bytes": 110, "bits_per_s": 250_000, "queue_bytes": 65_536}),
        (STREAM, {"mode": "dial", "framing": "frames", "queue_bytes": 1_048_576}),
        (NETWORK, {"host": "*", "port": 0, "patterns": 1000, "queue_bytes": 1_048_576}),
        (LINE, {"baud": 115_200, "stopbits": 1, "rtscts": False, "echo": False, "exclusive": True}),
        (LINE, {"queue_bytes": 65_536}),
        (PAIR.rs485, {"answer_ms": 20, "turnaround_ms": 1}),
    ],
)
def test_what_holds_by_default(medium: Any, defaults: dict[str, object]) -> None:
    assert {name: getattr(medium, name) for name in defaults} == defaults


def test_a_frame_of_the_command_line_waits_longer_for_a_slow_can_bus() -> None:
    (word,) = Can.words
    assert word.defaults == {"age_ms": 10_000}


def test_who_takes_what() -> None:
    assert list(CAN.takes(7)) == [Taken("CAN node id 7 (subject 0x1234)", on_wire=True)]
    assert list(Can(channel="can0", node=9).takes(7)) == [
        Taken("CAN node id 9 (subject 0x1234)", on_wire=True)
    ]
    assert list(CAN.takes(None)) == []
    assert not Taken("TCP port 9").on_wire
    assert [taken.what for taken in I2C.takes(7)] == ["I2C bus 1, target 0x42,", "I2C bus 1, target 0x43,"]
    assert list(STREAM.takes(7)) == []
    assert list(Tcp(host="h", port=9, mode="listen").takes(7)) == [Taken("TCP port 9", "h")]
    assert list(Tcp(host="h", port=0, mode="listen").takes(7)) == []
    assert list(NETWORK.takes(7)) == []
    assert list(Tmq(port=9).takes(7)) == [Taken("TCP port 9", "*")]
    assert list(LINE.takes(7)) == [Taken("serial port /dev/ttyS0")]


def test_can_needs_a_node_id_of_somebody() -> None:
    assert CAN.needs_node
    assert not Can(channel="can0", node=9).needs_node
    assert not any(medium.needs_node for medium in EVERY.values() if medium is not CAN)


def test_can_says_what_it_is_set_to() -> None:
    assert CAN.label() == "can can0"
    fast = Can(channel=0, interface="pcan", fd=True, bitrate=500_000, data_bitrate=2_000_000)
    assert fast.label() == "can pcan 0 FD 500000/2000000"
    assert CAN.wire("gw") == "can socketcan:can0 of gw"
    group = Can(channel="239.74.163.2", interface="udp_multicast")
    assert group.wire("gw") == "can 239.74.163.2:43113"


@pytest.mark.parametrize("channel", ["/dev/ttyACM0", "socket://10.0.0.7:4000"])
def test_an_adapter_at_a_serial_port_is_not_socketcan(channel: str) -> None:
    Can(channel=channel, interface="slcan")
    with pytest.raises(ValueError, match=f"{channel} is no network interface.* set interface to slcan"):
        Can(channel=channel)


def test_settings_that_have_no_effect_without_fd_are_refused() -> None:
    without_effect: list[Any] = [{"data_bitrate": 2_000_000}, {"mixed": "classic"}, {"bitrate_switch": False}]
    for settings in without_effect:
        Can(channel="can0", fd=True, **settings)
        with pytest.raises(ValueError, match="fd"):
            Can(channel="can0", **settings)


def test_only_an_interface_that_we_do_not_open_ourselves_needs_python_can() -> None:
    def libraries(can: Can) -> list[str]:
        return [need.module for need in can.needs() if isinstance(need, Library)]

    assert libraries(CAN) == []
    assert libraries(Can(channel="239.74.163.2", interface="udp_multicast")) == ["msgpack"]
    assert libraries(Can(channel="/dev/ttyACM0", interface="slcan")) == ["can", "serial"]
    assert libraries(Can(channel="PCAN_USBBUS1", interface="pcan")) == ["can"]


def test_an_option_that_a_group_does_not_have_is_refused() -> None:
    Can(channel="239.74.163.2", interface="udp_multicast", options={"port": 1, "hop_limit": 0})
    Can(channel="x", interface="kvaser", options={"anything": 1})
    with pytest.raises(ValueError, match="udp_multicast takes hop_limit and port, not receive_own_messages"):
        Can(channel="239.74.163.2", interface="udp_multicast", options={"receive_own_messages": True})


def test_a_bus_needs_a_free_port_to_listen_at_or_a_name_to_dial() -> None:
    assert list(BUS.needs()) == [Lookup("h")]
    assert list(Sp(address="tcp://0.0.0.0:5555", mode="listen").needs()) == [Listening("0.0.0.0", 5555)]


def test_udp_needs_its_own_port_and_address() -> None:
    assert list(Udp(host="10.0.0.7", port=5).needs()) == [Listening("0.0.0.0", 5, udp=True)]
    assert list(Udp(host="fe80::1", port=5, own_port=6).needs()) == [Listening("::", 6, udp=True)]
    named = Udp(host="h", port=5, own_host="10.0.0.1")
    assert list(named.needs()) == [Lookup("h"), Listening("10.0.0.1", 5, udp=True)]
    broadcast = Udp(host="10.0.0.255", port=5, own_host="10.0.0.1", broadcast=True)
    here = [Listening("0.0.0.0", 5, udp=True), Listening("10.0.0.1", 0, udp=True)]
    assert list(broadcast.needs()) == here


def test_a_trunk_takes_longer_by_the_envelopes() -> None:
    assert (LINE.seconds(100, True) or 0) / LINE.byte_s == pytest.approx(100 + 12 + 4 + 1 + 2)
    assert (LINE.seconds(100, False) or 0) / LINE.byte_s == pytest.approx(100 + 4 + 1 + 2)
    assert (LINE.seconds(250, False) or 0) / LINE.byte_s == pytest.approx(254 + 1 + 2)
    assert (LINE.seconds(251, False) or 0) / LINE.byte_s == pytest.approx(255 + 2 + 2)
    assert LINE.byte_s * LINE.baud == 10
    assert Uart(port="/x", parity="E", stopbits=2).byte_s * LINE.baud == 12


def test_a_radio_takes_longer_by_each_fragment() -> None:
    byte_s = 8 / RADIO.bits_per_s
    assert (RADIO.seconds(104, False) or 0) / byte_s == pytest.approx(104 + 6 + 113)
    assert (RADIO.seconds(92, True) or 0) / byte_s == pytest.approx(104 + 6 + 113)
    assert (RADIO.seconds(93, True) or 0) / byte_s == pytest.approx(93 + 2 * (14 + 6 + 113))
    assert (RADIO.seconds(900, False) or 0) / byte_s == pytest.approx(900 + 10 * (14 + 6 + 113))
    assert RADIO.wire("gw") == RADIO.wire("other") == "ieee802154 PAN 0xbeef"


def test_a_tmq_side_lets_in_publishers_but_for_loopback() -> None:
    assert list(NETWORK.lets_in()) == ["*"]
    assert list(Tmq(brokers=("tcp://10.0.0.1:1",)).lets_in()) == ["*"]
    assert list(Tmq(brokers=("tcp://127.0.0.1:1",)).lets_in()) == []
    assert list(Tmq(brokers=("tcp://127.0.0.1:1",), host="10.0.0.1").lets_in()) == ["10.0.0.1"]
    assert list(STREAM.lets_in()) == []
    assert list(Tcp(host="h", port=9, mode="listen").lets_in()) == ["h"]


def test_a_stream_is_not_dialled_at_no_port_or_at_any_host() -> None:
    for host, port in (("h", 0), ("*", 9)):
        Tcp(host=host, port=port, mode="listen")
        with pytest.raises(ValueError, match="dialled"):
            Tcp(host=host, port=port)


def test_an_address_is_dialled_or_listened_on() -> None:
    assert (BUS.dials, BUS.listens) == ("tcp://h:1", "")
    listening = Sp(address="tcp://*:1", mode="listen")
    assert (listening.dials, listening.listens) == ("", "tcp://*:1")
    assert not BUS.unshed()
    assert Sp(address="inproc://a").unshed()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"address": "tcp://h:1", "queue_bytes": 1 << 19}, "at least message_bytes"),
        ({"address": "tcp://h:1", "message_bytes": 1 << 24}, "at least message_bytes"),
        ({"address": "inproc://a", "queue_bytes": 1 << 20}, "bounds its queues in messages"),
        ({"address": "tcp://*:1"}, "dial"),
        ({"address": "wss://*:1", "mode": "listen"}, "cert_file"),
        ({"address": "ws://h:1", "origins": ("https://x",)}, "origins are for listening"),
    ],
)
def test_settings_of_an_address_that_can_never_work_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Sp(**settings)


def test_settings_of_an_address_that_work() -> None:
    Sp(address="tcp://h:1", queue_bytes=1 << 20)
    Sp(address="wss://h:1")
    Sp(address="tcp://*:1", mode="listen")
    Sp(address="ws://*:1", mode="listen", origins=("https://x",))
