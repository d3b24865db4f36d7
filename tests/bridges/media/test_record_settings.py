"""What the settings of our media may be: the lowest and highest values, and what is refused beside them."""

import re
import termios
from collections.abc import Callable
from typing import Any

import pytest

from bridges.media.can.link import CanLink
from bridges.media.can.medium import Can
from bridges.media.i2c.medium import I2c, parse_alert
from bridges.media.medium import Medium
from bridges.media.multicast.medium import Multicast
from bridges.media.shed_pipe import ShedLink
from bridges.media.sp.medium import Sp
from bridges.media.tcp.medium import Tcp
from bridges.media.tmq.medium import Tmq
from bridges.media.uart.medium import Rs485, Uart
from bridges.media.udp.medium import Udp
from bridges.protocols.lines.protocol import Lines
from bridges.protocols.protocol import Protocol
from bridges.protocols.raw.protocol import Raw
from bus.needs import Device, Library, Listening, Lookup, Probe, Sockets
from bus.transports.dialling import DialLink
from bus.wire.envelope import MESSAGE_BYTES_MAX


def can(**settings: Any) -> Can:
    usual: dict[str, Any] = {"channel": "can0", "fd": True}
    return Can(**usual | settings)


def in_group(**settings: Any) -> Can:
    return can(channel="239.1.1.1", interface="udp_multicast", **settings)


def i2c(**settings: Any) -> I2c:
    usual: dict[str, Any] = {"bus": 1, "targets": (0x42,)}
    return I2c(**usual | settings)


def group(**settings: Any) -> Multicast:
    usual: dict[str, Any] = {"group": "239.9.42.1", "port": 9943, "interface": "eth0"}
    return Multicast(**usual | settings)


def stream(**settings: Any) -> Tcp:
    usual: dict[str, Any] = {"host": "h", "port": 9, "mode": "listen"}
    return Tcp(**usual | settings)


def line(**settings: Any) -> Uart:
    usual: dict[str, Any] = {"port": "/dev/ttyS0"}
    return Uart(**usual | settings)


def target(address: int) -> I2c:
    return i2c(targets=(address,))


def node(address: int) -> Rs485:
    return Rs485(nodes=(address,))


def of(make: Callable[..., Any], name: str) -> Callable[[Any], Any]:
    return lambda value: make(**{name: value})


@pytest.mark.parametrize(
    ("make", "lowest", "highest"),
    [
        (of(can, "bitrate"), 1_000, 20_000_000),
        (of(can, "data_bitrate"), 1_000, 20_000_000),
        (of(can, "subject"), 0, 8191),
        (of(i2c, "bus"), 0, 255),
        (of(i2c, "clock_hz"), 1_000, 5_000_000),
        (target, 0x08, 0x77),
        (of(group, "hops"), 0, 255),
        (of(group, "datagram_bytes"), 64, 65_507),
        (of(group, "queue_bytes"), 8192, 1 << 40),
        (of(stream, "port"), 0, 65_535),
        (of(Tmq, "port"), 0, 65_535),
        (of(Tmq, "patterns"), 1, 65_536),
        (of(line, "baud"), 50, 20_000_000),
        (node, 1, 254),
    ],
)
def test_the_lowest_and_the_highest_value(make: Callable[[int], Any], lowest: int, highest: int) -> None:
    make(lowest)
    make(highest)
    for beyond in (lowest - 1, highest + 1):
        with pytest.raises(ValueError, match=str(beyond)):
            make(beyond)


def test_the_turnaround_of_a_pair_is_at_most_a_day() -> None:
    Rs485(nodes=(1,), turnaround_ms=0)
    Rs485(nodes=(1,), turnaround_ms=86_400_000)
    for beyond in (-1, 86_400_001):
        with pytest.raises(ValueError, match="turnaround_ms"):
            Rs485(nodes=(1,), turnaround_ms=beyond)


@pytest.mark.parametrize(
    ("make", "items", "most"),
    [
        (of(i2c, "targets"), range(0x08, 0x78), 112),
        (of(Rs485, "nodes"), range(1, 255), 254),
        (of(Tmq, "brokers"), [f"tcp://10.0.0.{host}:1" for host in range(1, 65)], 64),
    ],
)
def test_lists_have_at_least_one_item_and_a_bound(make: Callable[[Any], Any], items: Any, most: int) -> None:
    items = tuple(items)
    assert len(items) == most
    make(items[:1])
    make(items)
    for wrong in ((), (*items, items[0])):
        with pytest.raises(ValueError, match=str(most)):
            make(wrong)


def test_up_to_64_pages_of_other_hosts() -> None:
    pages = tuple(f"https://h{number}" for number in range(65))
    Sp(address="ws://*:1", mode="listen", origins=pages[:64])
    with pytest.raises(ValueError, match="64"):
        Sp(address="ws://*:1", mode="listen", origins=pages)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: i2c(targets=(0x42, 0x42)), "the same target is listed twice"),
        (lambda: Rs485(nodes=(3, 3)), "a node is listed twice"),
        (lambda: line(stopbits=3), "stopbits are 1, 1.5 or 2, not 3"),
        (lambda: line(port="socket://h:1", rtscts=True), "rtscts has no effect here"),
        (lambda: line(port="loop://"), "loop:// has no descriptor .*'socket', 'rfc2217', 'hwgrep'"),
        (lambda: line(port="socket://h"), "write it as socket://host:port"),
        (lambda: line(port="socket://h:1/x"), "write it as socket://host:port"),
        (lambda: line(port="rfc2217://h:1?x=1"), "write it as rfc2217://host:port"),
        (lambda: line(port="rfc2217://:1"), "write it as rfc2217://host:port"),
        (lambda: line(port="hwgrep://("), "not a regular expression"),
        (lambda: group(group="10.0.0.1"), "no multicast group"),
        (lambda: group(group="ff02::1%eth0"), "no multicast group"),
        (lambda: group(interface=""), "interface is needed"),
        (lambda: Tmq(host="::1"), "IPv6"),
        (lambda: can(options={"b": 1, "a": False}), "socketcan takes none, and a, b would have no effect"),
        (lambda: in_group(options={"port": "x"}), "port is a whole number up to 65535, not x"),
        (lambda: in_group(options={"port": 65_536}), "port is a whole number up to 65535, not 65536"),
        (lambda: in_group(options={"hop_limit": True}), "hop_limit is a whole number up to 255, not True"),
        (lambda: in_group(options={"hop_limit": 256}), "hop_limit is a whole number up to 255, not 256"),
        (lambda: can(options={"bitrate": 1}), "bitrate belongs beside options"),
        (lambda: i2c(alert="gpiochip0:17"), "write the alert line"),
        (lambda: i2c(alert="/dev/gpiochip0:x"), "write the alert line"),
    ],
)
def test_what_can_never_work_is_refused(make: Callable[[], Medium], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_settings_that_work() -> None:
    for stopbits in (1, 1.5, 2):
        line(stopbits=stopbits)
    line(port="rfc2217://h:1", rtscts=True)
    line(port="hwgrep://0403:6001&n=1")
    line(port="socket://h:1/")
    Tmq(host="10.0.0.1")
    Tmq(host="*")
    can(interface="kvaser", options={"local_loopback": True, "receive_own_messages": False})
    in_group(options={"port": 65_535, "hop_limit": 255})
    assert parse_alert("/dev/gpiochip0:17") == i2c(alert="/dev/gpiochip0:17").alert_line
    assert parse_alert("/dev/gpiochip0:17") == ("/dev/gpiochip0", 17)
    assert i2c().alert_line is None


def test_the_time_of_a_can_frame_depends_on_its_rates_and_its_envelope() -> None:
    """80 bits of a classic frame and 10 for each data byte, all stuffed; 7 of these for the message."""
    classic = Can(channel="can0", bitrate=1000)
    assert classic.seconds(7, trunk=False) == pytest.approx(0.160)
    assert (classic.seconds(7, trunk=True) or 0) == pytest.approx(classic.seconds(19, trunk=False))
    fast = can(bitrate=1000, data_bitrate=4000)
    assert fast.seconds(7, trunk=False) == pytest.approx(57 / 1000 + 113 / 4000)
    for same in (can(bitrate=1000), can(bitrate=1000, data_bitrate=4000, bitrate_switch=False)):
        assert same.seconds(7, trunk=False) == pytest.approx(57 / 1000 + 113 / 1000)
    mixed = can(bitrate=1000, data_bitrate=4000, mixed="classic")
    assert mixed.seconds(7, trunk=False) == pytest.approx(0.160)
    assert (can().sends_fd, mixed.sends_fd, classic.sends_fd) == (True, False, False)
    assert not classic.unjudged()


def test_the_time_of_an_i2c_frame_counts_its_envelope_its_crc_and_a_poll_for_each_segment() -> None:
    """Of each 30 bytes: 12 more for addresses, registers, ctl, n and a poll; nine clocks a byte."""
    assert i2c(clock_hz=9000).seconds(14, trunk=False) == pytest.approx((30 + 12) / 1000)
    assert i2c(clock_hz=9000).seconds(15, trunk=True) == pytest.approx((31 + 24) / 1000)
    assert i2c(clock_hz=9000, targets=(0x42, 0x43)).seconds(14, trunk=False) == pytest.approx(2 * 42 / 1000)


def test_what_a_machine_needs_for_each_medium() -> None:
    assert list(can().needs()) == [
        Sockets("AF_CAN"),
        Probe("bridges.media.can.interfaces:trouble", ("can0", True)),
    ]
    slcan = list(can(interface="slcan", channel="/dev/ttyACM0").needs())
    assert slcan[2] == Probe("bridges.media.can.link:unknown", ("slcan",))
    assert [need.path for need in slcan if isinstance(need, Device)] == ["/dev/ttyACM0"]
    assert len(list(can(interface="slcan", channel="COM3").needs())) == 3
    assert len(list(can(interface="pcan", channel="/x").needs())) == 2
    paths = [need.path for need in i2c(alert="/dev/gpiochip0:17").needs() if isinstance(need, Device)]
    assert paths == ["/dev/i2c-1", "/dev/gpiochip0"]
    assert len(list(i2c().needs())) == 2
    assert list(group().needs()) == [
        Probe("bridges.media.multicast.interfaces:trouble", ("eth0", "239.9.42.1"))
    ]
    assert list(stream().needs()) == [Listening("h", 9)]
    assert list(stream(port=0).needs()) == []
    assert list(stream(mode="dial").needs()) == [Lookup("h")]
    assert list(Tmq(brokers=("tcp://h:1",)).needs()) == [Lookup("h", ipv4=True)]
    assert list(Tmq(port=9).needs()) == [Listening("*", 9)]
    assert list(Tmq(host="10.0.0.1").needs()) == [Listening("10.0.0.1", 0)]
    library = Library("serial", "pyserial", "uart")
    assert list(line(port="socket://h:1").needs()) == [library, Lookup("h")]
    assert list(line(port="hwgrep://x").needs()) == [
        library,
        Probe("bridges.media.uart.ports:trouble", ("hwgrep://x",)),
    ]
    assert [need.path for need in line().needs() if isinstance(need, Device)] == ["/dev/ttyS0"]


def test_the_rates_that_linux_has_a_name_for_are_usual_but_for_two() -> None:
    rates = sorted(int(name[1:]) for name in dir(termios) if re.fullmatch(r"B[1-9]\d*", name))
    assert [baud for baud in rates if line(baud=baud).unusual()] == [1_152_000, 3_500_000]


def test_how_a_side_is_named() -> None:
    assert can(channel="/dev/ttyACM0", interface="slcan").label() == "can slcan /dev/ttyACM0 FD"
    assert Can(channel="can0", bitrate=500_000).label() == "can can0 500000"
    assert can(channel="239.1.1.1", interface="udp_multicast", options={"port": 7}).wire("gw") == (
        "can 239.1.1.1:7"
    )
    assert i2c(targets=(8, 0x42)).label() == "i2c 1: 0x08, 0x42"
    assert line().label() == "uart /dev/ttyS0 115200"
    assert line(rs485=Rs485(nodes=(1,))).label() == "uart /dev/ttyS0 115200 RS-485"
    assert Tmq().label() == "tmq all brokers"
    assert Tmq(brokers=("tcp://a:1", "tcp://b:2")).label() == "tmq a:1,b:2"
    assert (group().label(), group().wire("gw")) == (
        "multicast 239.9.42.1:9943 on eth0",
        "multicast 239.9.42.1:9943",
    )


def test_a_can_link_has_the_node_id_of_its_side_or_of_its_gateway() -> None:
    for record, node_id in ((can(), 7), (can(node=9), 9)):
        link = record.link(7)
        assert isinstance(link, CanLink)
        assert link.options.node == node_id


def test_a_link_to_an_address_has_room_for_envelopes_and_is_wary() -> None:
    """It may be a trunk, which only its side of the bridge knows; without keys it closes peers that sign."""
    link = Sp(address="tcp://h:1", queue_bytes=2_000_000).link()
    assert isinstance(link, ShedLink)
    assert link.queue_bytes == 2_000_140  # and for a record of a durable trunk
    assert isinstance(link.link, DialLink)
    assert link.link._wary  # noqa: SLF001


def test_of_a_long_address_a_message_shows_64_characters() -> None:
    with pytest.raises(ValueError, match='"fe80::1%' + 56 * "e" + '" is an IPv6 address'):
        Tmq(host="fe80::1%" + 80 * "e")


@pytest.mark.parametrize(
    ("medium", "protocol"),
    [
        (can(channel="x", interface="virtual", queue_bytes=MESSAGE_BYTES_MAX), Raw()),
        (stream(queue_bytes=MESSAGE_BYTES_MAX), Lines()),
        (stream(mode="dial", queue_bytes=MESSAGE_BYTES_MAX), Lines()),
        (line(queue_bytes=MESSAGE_BYTES_MAX), Lines()),
        (Udp(host="h", port=9, queue_bytes=MESSAGE_BYTES_MAX), Lines()),
    ],
    ids=lambda one: one.label(),
)
def test_the_least_queue_that_a_file_may_have_makes_a_link(medium: Medium, protocol: Protocol) -> None:
    for link in (medium.link(1), medium.speaking(protocol)):
        assert link.queue_bytes == MESSAGE_BYTES_MAX
