"""The settings with which a serial port is opened: modem lines, bits, flow control, RS-485 of the kernel."""

import fcntl
import struct
import termios
from asyncio import get_running_loop
from typing import Any

import pytest

from bridges.media.uart.medium import Rs485, Uart
from bridges.media.uart.port import open_port
from bridges.protocols.lines.protocol import Lines
from bus.hub import Hub
from tests.bridges.support import PtyPair
from tests.helpers.peers import until

_TIOCSRS485 = 0x542F
_LINES = {termios.TIOCMBIS: True, termios.TIOCMBIC: False}
_NAMES = {termios.TIOCM_DTR: "dtr", termios.TIOCM_RTS: "rts"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Note what the kernel is asked about modem lines and RS-485: a pty has neither."""
    noted = list[tuple[str, Any]]()
    ioctl = fcntl.ioctl

    def asking(fd: int, request: int, argument: Any = 0, *rest: Any) -> Any:
        if request in _LINES:
            (bits,) = struct.unpack("I", argument)
            noted.append((_NAMES[bits], _LINES[request]))
            return argument
        if request == _TIOCSRS485:
            noted.append(("rs485", list(argument[:3])))
            return 0
        if request == 0x542E:  # TIOCGRS485
            return 0
        return ioctl(fd, request, argument, *rest)

    monkeypatch.setattr(fcntl, "ioctl", asking)
    return noted


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, []),
        ({"rtscts": True}, []),
        ({"dtr": True}, [("dtr", True)]),
        ({"dtr": False}, [("dtr", False)]),
        ({"rts": False}, [("rts", False)]),
        ({"dtr": False, "rts": True}, [("dtr", False), ("rts", True)]),
        ({"rs485": Rs485(nodes=(1,))}, []),
        ({"rs485": Rs485()}, [("rs485", [0b011, 0, 0])]),
        ({"rs485": Rs485(nodes=(1,), kernel=True, rts_on_send=False)}, [("rs485", [0b101, 0, 0])]),
        ({"rs485": Rs485(before_ms=2, after_ms=3), "echo": True}, [("rs485", [0b10011, 2, 3])]),
    ],
)
def test_lines_move_only_if_that_is_asked_for(
    line: PtyPair, asked: list[tuple[str, Any]], settings: dict[str, Any], expected: list[tuple[str, Any]]
) -> None:
    port = open_port(Uart(port=str(line.path), **settings), None)
    port.close()
    assert asked == expected


@pytest.mark.parametrize(
    ("settings", "word", "bits"),
    [
        ({}, 2, termios.CS8),
        ({"data_bits": 7}, 2, termios.CS7),
        ({"xonxoff": True}, 0, termios.IXON | termios.IXOFF),
    ],
)
def test_bits_and_flow_control_reach_the_kernel(
    line: PtyPair, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], word: int, bits: int
) -> None:
    attributes = list[Any]()  # of the last setting: a pty keeps 8 bits whatever is asked for
    monkeypatch.setattr(termios, "tcsetattr", lambda fd, when, given: attributes.append(given))
    open_port(Uart(port=str(line.path), **settings), None).close()
    mask = termios.CSIZE if word == 2 else bits
    assert attributes[-1][word] & mask == bits


def test_a_byte_takes_the_time_of_its_bits() -> None:
    assert Uart(port="x", baud=1000).byte_s == pytest.approx(0.010)
    assert Uart(port="x", baud=1000, data_bits=7, parity="E", stopbits=2).byte_s == pytest.approx(0.011)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"port": f"socket://h:{'9' * 5000}"}, f'^"{"9" * 64}" is no port: write a number up to 65535'),
        ({"port": "socket://h:1", "data_bits": 7}, "data_bits has no effect here"),
        ({"port": "socket://h:1", "xonxoff": True}, "xonxoff has no effect here"),
        ({"port": "socket://h:1", "dtr": False}, "dtr has no effect here"),
        ({"port": "socket://h:1", "rts": True}, "rts has no effect here"),
        ({"port": "rfc2217://h:1", "rs485": Rs485()}, "rs485 has no effect here"),
        ({"rtscts": True, "rts": True}, "rts is not free"),
        ({"rs485": Rs485(), "rts": True}, "rts is not free"),
    ],
)
def test_settings_without_effect_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Uart(**({"port": "/dev/x"} | settings))


@pytest.mark.parametrize(
    ("settings", "spoken", "words"),
    [
        ({}, False, ""),
        ({}, True, ""),
        ({"data_bits": 7}, True, ""),
        ({"data_bits": 7}, False, "TMQ needs 8 data bits"),
        ({"xonxoff": True}, False, "TMQ frames hold the bytes of xonxoff"),
        ({"rs485": Rs485()}, False, "rs485 needs nodes"),
        ({"rs485": Rs485()}, True, ""),
        ({"rs485": Rs485(nodes=(1,))}, True, "leave nodes out"),
    ],
)
def test_what_needs_a_protocol_and_what_has_none(settings: dict[str, Any], spoken: bool, words: str) -> None:
    unfit = Uart(port="/dev/x", **settings).unfit(spoken)
    assert unfit.startswith(words) if words != "leave nodes out" else words in unfit
    assert bool(unfit) == bool(words)


async def test_a_port_has_one_owner_and_the_other_is_told_who(line: PtyPair) -> None:
    first, second = (Uart(port=str(line.path)).speaking(Lines(), retry_min_s=0.01) for _ in range(2))
    first.open(Hub(), get_running_loop())
    await until(lambda: first.state == "up")
    second.open(Hub(), get_running_loop())
    await until(lambda: second.state == "waiting")
    assert second.fault == f"{line.path} is in use by this process"
    first.close()
    await until(lambda: second.state == "up")
    second.close()


def test_what_is_no_serial_line_is_told_in_words() -> None:
    with pytest.raises(OSError, match=r"^/dev/null is no serial line: name one, as /dev/ttyUSB0$"):
        open_port(Uart(port="/dev/null"), None)
