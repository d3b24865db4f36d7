"""The node's frames against the bus's own."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.embedded import buscoupler_node as node_module
from bus.embedded.buscoupler_node import Node, bare, key, pack, token, unpack
from bus.errors import FrameError, TokenError
from bus.wire.envelope import Envelope, split, wrap
from bus.wire.frame import pack as bus_pack
from bus.wire.frame import unpack as bus_unpack
from bus.wire.pattern import token as bus_token
from tests.bus.embedded.support import small_node

SMALL: Any = small_node()
U32 = st.integers(0, 0xFFFFFFFF)
FRAMES = st.builds(bus_pack, st.integers(0, 255), st.lists(U32, max_size=255), st.binary(max_size=2048))


@pytest.mark.parametrize("module", [node_module, SMALL])
@given(name=st.text(max_size=40) | U32)
def test_tokens_are_those_of_the_bus(module: Any, name: str | int) -> None:
    assert module.token(name) == bus_token(name)


@pytest.mark.parametrize("name", [-1, 1 << 32, 1.5, None, True])
def test_a_value_that_is_no_token_on_the_bus_is_refused(name: Any) -> None:
    with pytest.raises(TokenError):
        bus_token(name)
    with pytest.raises(ValueError):  # noqa: PT011
        token(name)


@pytest.mark.parametrize("module", [node_module, SMALL])
def test_crc(module: Any) -> None:
    assert module.crc(b"123456789") == bytes.fromhex("2639f4cb")
    assert module.crc(bytes(range(256)) * 3) == node_module.crc(bytes(range(256)) * 3)


@given(st.integers(0, 255), st.lists(U32, max_size=255), st.binary(max_size=2048))
def test_frames_are_those_of_the_bus(kind: int, tokens: list[int], data: bytes) -> None:
    frame = pack(kind, tokens, data)
    assert frame == bus_pack(kind, tokens, data)
    assert unpack(frame) == bus_unpack(frame)
    assert pack(kind, key(tokens), data) == frame


@pytest.mark.parametrize(
    ("kind", "tokens", "data"), [(256, (), b""), (-1, (), b""), (1, range(256), b""), (1, (), bytes(2049))]
)
def test_what_the_bus_refuses_is_refused(kind: int, tokens: Any, data: bytes) -> None:
    with pytest.raises(FrameError):
        bus_pack(kind, tokens, data)
    with pytest.raises(ValueError, match="frame"):
        pack(kind, tokens, data)


@given(st.binary(max_size=40) | FRAMES | st.builds(lambda f, b: f + b, FRAMES, st.binary(max_size=2)))
def test_unpack_takes_exactly_what_the_bus_takes(data: bytes) -> None:
    try:
        expected = bus_unpack(data)
    except FrameError:
        with pytest.raises(ValueError, match="frame"):
            unpack(data)
    else:
        assert unpack(data) == expected


@given(
    st.builds(wrap, FRAMES, st.builds(Envelope, U32, U32, st.integers(0, 15), st.integers(0, 15)))
    | FRAMES
    | st.binary(max_size=40)
    | st.binary(max_size=40).map(lambda rest: b"\xe1\x08\xf0" + rest)
)
def test_envelopes_are_taken_off_as_on_the_bus(message: bytes) -> None:
    parts = split(message)
    assert bare(message) == (None if parts is None else parts[1])


class Loop:
    """A link that receives what it sends."""

    polls = 0

    def __init__(self) -> None:
        self.messages: list[bytes] = []

    def send(self, message: bytes) -> bool:
        self.messages.append(message)
        return True

    def poll(self) -> bytes | None:
        return self.messages.pop(0) if self.messages else None


@pytest.mark.parametrize("module", [node_module, SMALL])
def test_subscriptions_match_by_prefix(module: Any) -> None:
    node: Node = module.Node(Loop())
    heard: list[tuple[str, tuple[int, ...], bytes]] = []

    def hear(name: str, tokens: tuple[int, ...], data: bytes) -> None:
        heard.append((name, tokens, data))

    subscriptions: tuple[tuple[str, Any], ...] = (
        ("all", ()),
        ("fridge", "fridge"),
        ("temp", ("fridge", "temp")),
        ("seven", 7),
    )
    for name, pattern in subscriptions:
        node.subscribe(pattern, partial(hear, name))
    node.publish(("fridge", "temp", 7), "4.5")
    node.publish(key("fridge"), b"\0")
    node.publish((), b"x")
    assert [node.poll() for _ in range(4)] == [True, True, True, False]
    temp = (token("fridge"), token("temp"), 7)
    assert heard == [
        ("all", temp, b"4.5"),
        ("fridge", temp, b"4.5"),
        ("temp", temp, b"4.5"),
        ("all", temp[:1], b"\0"),
        ("fridge", temp[:1], b"\0"),
        ("all", (), b"x"),
    ]


def test_rubbish_from_the_link_is_counted_and_the_rest_goes_on() -> None:
    link = Loop()
    node = Node(link)
    heard: list[bytes] = []
    node.subscribe((), lambda tokens, data: heard.append(data))
    link.messages += [
        b"",
        b"rubb",
        b"\xe1\x08\xf0\x04" + bytes(13),
        wrap(pack(1, (), b"good"), Envelope(1, 2)),
    ]
    while node.poll():
        pass
    assert heard == [b"good"]
    assert node.rejected == 3
