"""The RFC 2217 client, byte by byte: what it asks, answers, refuses and skips."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.media.uart.remote import Rfc2217Port
from bridges.media.uart.rfc2217 import Client, escape

DO_COM_PORT = b"\xff\xfd\x2c"
DO_BINARY = b"\xff\xfd\x00"


def answer(command: int, value: bytes) -> bytes:
    return b"\xff\xfa\x2c" + bytes((command + 100,)) + escape(value) + b"\xff\xf0"


def agreed(baud: int = 115200) -> bytes:
    settings = ((1, baud.to_bytes(4, "big")), (2, b"\x08"), (3, b"\x01"), (4, b"\x01"))
    return DO_BINARY + DO_COM_PORT + b"".join(answer(command, value) for command, value in settings)


def test_negotiation_word_by_word() -> None:
    client = Client(115200)
    first = "ff fb 00 ff fb 03 ff fb 2c ff fd 00 ff fd 03"
    assert bytes(client.replies).hex(" ") == first
    client.replies.clear()
    assert client.feed(DO_BINARY + DO_COM_PORT) == b""
    assert bytes(client.replies).startswith(bytes.fromhex("fffa2c01 0001c200 fff0 fffa2c0208fff0"))
    assert not client.ready
    client.feed(agreed()[6:])
    assert client.ready


def asked(client: Client) -> list[str]:
    """Return the commands that the client sends when the server allows RFC 2217, in hexadecimal."""
    client.replies.clear()
    client.feed(DO_COM_PORT)
    return [part.hex() for part in bytes(client.replies).removesuffix(b"\xff\xf0").split(b"\xff\xf0")]


def test_what_is_set_by_default() -> None:
    """8N1 without flow control, DTR and RTS left alone, and what was buffered is purged (RFC 2217)."""
    settings = ["0100002580", "0208", "0301", "0401"]
    lines = ["0501", "0c03"]
    assert asked(Client(9600)) == ["fffa2c" + command for command in settings + lines]


@pytest.mark.parametrize(
    ("settings", "commands"),
    [
        ({"parity": "O"}, ["0302"]),
        ({"parity": "E"}, ["0303"]),
        ({"parity": "M"}, ["0304"]),
        ({"parity": "S"}, ["0305"]),
        ({"stopbits": 2}, ["0402"]),
        ({"stopbits": 1.5}, ["0403"]),
        ({"rtscts": True}, ["0503"]),
        ({"xonxoff": True}, ["0502"]),
        ({"data_bits": 7}, ["0207"]),
        ({"dtr": True, "rts": True}, ["0508", "050b"]),
        ({"dtr": False, "rts": False}, ["0509", "050c"]),
    ],
)
def test_settings_by_the_numbers_of_rfc_2217(settings: dict[str, Any], commands: list[str]) -> None:
    usual = asked(Client(9600))
    assert [command for command in asked(Client(9600, **settings)) if command not in usual] == [
        "fffa2c" + command for command in commands
    ]


def test_the_settings_are_sent_once() -> None:
    client = Client(9600)
    assert asked(client) != [""]
    assert asked(client) == [""]


@pytest.mark.parametrize("missing", [0, 2, 3, 4, 5])
def test_it_is_ready_when_the_server_agreed_to_everything(missing: int) -> None:
    parts = [DO_BINARY, DO_COM_PORT, *(agreed().removeprefix(DO_BINARY + DO_COM_PORT).split(b"\xff\xf0"))]
    said = [part + b"\xff\xf0" if part.startswith(b"\xff\xfa") else part for part in parts[:6]]
    client = Client(115200)
    client.feed(b"".join(part for part in said if part is not said[missing]))
    assert not client.ready
    client.feed(said[missing])
    assert client.ready


@pytest.mark.parametrize(
    ("said", "replies"),
    [
        ("fffe03", "fffc03"),  # it does not want our suppress-go-ahead: we stop
        ("fffe03 fffe03", "fffc03"),
        ("fffe03 fffd03", "fffc03 fffb03"),  # and begin again
        ("fffe18", ""),  # what we never offered
        ("fffd01", "fffc01"),  # an echo by us
        ("fffd2d", "fffc2d"),
        ("fffc03", "fffe03"),  # it stops its own
        ("fffc03 fffc03", "fffe03"),
        ("fffc03 fffb03", "fffe03 fffd03"),
        ("fffc01", ""),
        ("fffb2c", "fffd2c"),
        ("fffb22", "fffe22"),
        ("fff1 fff9 fff0", ""),  # commands without an option
    ],
)
def test_each_option_is_answered_once(said: str, replies: str) -> None:
    client = Client(9600)
    client.replies.clear()
    assert client.feed(bytes.fromhex(said) + b"x") == b"x"
    assert client.replies == bytes.fromhex(replies)
    assert not client.refused


def test_agreement_is_not_answered_again() -> None:
    client = Client(115200)
    client.feed(agreed())
    client.replies.clear()
    client.feed(DO_BINARY + b"\xff\xfb\x00\xff\xfb\x03")
    assert client.replies == b""
    client.feed(b"\xff\xfb\x01\xff\xfb\x01\xff\xfd\x18\xff\xfb\x22")
    assert bytes(client.replies).hex(" ") == "ff fd 01 ff fc 18 ff fe 22"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"\xff\xfe\x2c", "refuses RFC 2217"),
        (b"\xff\xfe\x00", "refuses binary"),
        (DO_COM_PORT + answer(1, (9600).to_bytes(4, "big")), "baud rate 9600, not 115200"),
        (DO_COM_PORT + answer(2, b"\x07"), "data bits 7, not 8"),
        (DO_COM_PORT + answer(3, b"\x02"), "parity 2, not 1"),
        (DO_COM_PORT + answer(4, b"\x02"), "stop bits 2, not 1"),
        (DO_COM_PORT + answer(1, b"\0\0\0\1\xee"), "baud rate 1, not 115200"),  # a value of at most 4 bytes
        (DO_COM_PORT + answer(1, b""), "baud rate 0, not 115200"),
    ],
)
def test_refused(said: bytes, words: str) -> None:
    client = Client(115200)
    client.feed(said)
    assert words in client.refused
    client.feed(agreed())
    assert not client.ready


@pytest.mark.parametrize(
    "body", [b"", b"\x2c", b"\x2d\x6c", b"\x2c\x6b\0", b"\x2c\x01\0", b"\x18\x65\0\0\0\1"]
)
def test_answers_about_something_else_change_nothing(body: bytes) -> None:
    client = Client(115200)
    client.replies.clear()
    client.feed(b"\xff\xfa" + body + b"\xff\xf0")
    assert (client.suspended, client.refused, bytes(client.replies)) == (False, "", b"")
    client.feed(agreed())
    assert client.ready


def test_a_setting_that_holds_the_escape_byte() -> None:
    client = Client(0xFFFF00)
    client.feed(agreed(0xFFFF00))
    assert client.ready
    assert answer(-99, b"\x00\xff\xff\x00") in bytes(client.replies)


def test_suspended_and_resumed() -> None:
    client = Client(115200)
    client.feed(answer(8, b""))
    assert client.suspended
    client.feed(answer(9, b""))
    assert not client.suspended


@given(st.binary(max_size=300), st.lists(st.integers(1, 9)))
def test_cuts_change_nothing(data: bytes, steps: list[int]) -> None:
    stream = escape(data[:100]) + b"\xff\xf1" + answer(7, b"\xff\x01") + escape(data[100:])
    whole, cut = Client(9600), Client(9600)
    assert whole.feed(stream) == data
    found, position = b"", 0
    while position < len(stream):
        step = steps.pop() if steps else 1
        found += cut.feed(stream[position : position + step])
        position += step
    assert found == data


@given(st.lists(st.binary(max_size=900)))
def test_noise_never_raises_and_is_bounded(pieces: list[bytes]) -> None:
    client = Client(115200)
    for piece in pieces:
        client.feed(piece)
        assert len(client.replies) <= 4096
        assert len(client._held) <= 512 + 900  # noqa: SLF001


def test_replies_to_a_server_that_never_reads_are_bounded() -> None:
    client = Client(115200)
    client.replies.clear()
    for _ in range(2000):
        client.feed(b"\xff\xfd\x18")
    assert len(client.replies) == 4095  # the next would be the 4098th byte
    client.replies += b"x"
    client.feed(b"\xff\xfd\x18")
    assert len(client.replies) == 4096
    for size in (4094, 4093):
        client.replies[:] = bytes(size)
        client.feed(b"\xff\xfd\x18")
        assert len(client.replies) == (4094 if size == 4094 else 4096)


@pytest.mark.parametrize(
    ("size", "obeyed", "left"), [(511, True, b""), (512, False, b""), (513, False, b"\xf0")]
)
def test_a_command_of_512_bytes_or_more_is_skipped_up_to_there(size: int, obeyed: bool, left: bytes) -> None:
    command = b"\xff\xfa\x2c\x6c" + bytes(size - 6) + b"\xff\xf0"
    client = Client(9600)
    assert client.feed(command + b"hello") == left + b"hello"
    assert client.suspended == obeyed


@given(st.lists(st.sampled_from(b"\xff\xfa\xf0\xf1\xfb\xfe\x2c\x6c\0a"), max_size=30), st.integers(0, 540))
def test_commands_of_any_kind_are_cut_anywhere(tail: list[int], padding: int) -> None:
    stream = b"\xff\xfa" + b"x" * padding + bytes(tail) + b"hello\xff\xf0"
    whole, cut = Client(9600), Client(9600)
    assert whole.feed(stream) == b"".join(cut.feed(bytes((byte,))) for byte in stream)
    assert (whole.suspended, whole.replies) == (cut.suspended, cut.replies)


def test_an_escaped_byte_at_the_end_of_what_was_read_is_given_at_once() -> None:
    assert Client(9600).feed(b"a\xff\xff") == b"a\xff"


def test_an_endless_subnegotiation_is_given_up() -> None:
    client = Client(115200)
    client.feed(b"\xff\xfa" + b"x" * 509)
    assert len(client._held) == 511  # noqa: SLF001
    client.feed(b"x")
    assert client._held == b""  # noqa: SLF001
    client.feed(b"\xff\xfa" + b"x" * 510)
    assert client.feed(b"hello") == b"hello"


@given(
    st.lists(st.sampled_from(b"\xffa"), min_size=1, max_size=60).map(bytes),
    st.lists(st.integers(0, 5), min_size=1, max_size=50),
)
def test_an_escape_cut_in_two_is_finished(data: bytes, takes: list[int]) -> None:
    """However little the socket accepts, the wire carries the escaped bytes once and in order."""

    class Socket:
        wire = b""

        def setblocking(self, flag: bool) -> None:
            pass

        def setsockopt(self, level: int, option: int, value: int) -> None:
            pass

        def send(self, data: bytes) -> int:
            size = takes.pop() if takes else 3
            self.wire += data[:size]
            return min(size, len(data))

    sock: Any = Socket()
    client = Client(115200)
    client.replies.clear()
    port, left = Rfc2217Port(sock, client), data + b"\0"
    while left:
        left = left[port.write(left) :]
    assert sock.wire == escape(data + b"\0")
