"""The frames between two proxies: the page's example, what is none, and no bytes that make reading raise."""

import re

from hypothesis import given
from hypothesis import strategies as st

from devices.proxy import wire
from devices.proxy.wire import HEAD, Head, Hello, Target
from tests.helpers import ROOT


def test_the_page_s_example() -> None:
    page = (ROOT / "docs/wire/proxy.md").read_text()
    (example,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    lines = re.findall(r"^((?:[0-9a-f]{2} )+) ", example, re.MULTILINE)
    frame = wire.pack_offer({"fridge": {"interfaces": ["router"], "via": ["5f"]}})
    assert frame == bytes.fromhex("".join(lines))


def test_each_is_read_again() -> None:
    def body(frame: bytes) -> bytes:
        head = wire.read_head(frame[: HEAD.size])
        assert head is not None
        assert head.size == len(frame) - HEAD.size
        return frame[HEAD.size :]

    assert wire.read_hello(body(wire.pack_hello(Hello("a", "b")))) == Hello("a", "b")
    assert wire.read_open(body(wire.pack_open(3, Target("s", "i")))) == Target("s", "i")
    assert wire.read_credit(body(wire.pack_credit(3, 77))) == 77
    offer = wire.pack_offer({"s": {"via": []}})
    assert offer is not None
    assert wire.read_offer(body(offer)) == {"s": {"via": []}}
    assert wire.pack_offer({"s": {"x": "y" * (1 << 20)}}) is None


def test_what_no_frame_can_have() -> None:
    heads = [
        (0, 0, 0),
        (9, 0, 0),
        (wire.DATA, 0, 1),
        (wire.PING, 1, 0),
        (wire.PING, 0, 1),
        (wire.CREDIT, 1, 5),
    ]
    heads += [(wire.DATA, 1, wire.DATA_BYTES + 1), (wire.OFFER, 0, (1 << 20) + 1), (255, 1, 1)]
    assert [wire.read_head(HEAD.pack(*head)) for head in heads] == [None] * len(heads)
    assert wire.read_head(HEAD.pack(wire.DATA, 1, wire.DATA_BYTES)) == Head(wire.DATA, 1, wire.DATA_BYTES)
    assert "version 2" in str(wire.read_hello(b'{"version": 2, "id": "a", "name": "b"}'))


@given(st.binary(min_size=9, max_size=9), st.binary(max_size=200))
def test_no_bytes_make_it_raise(head: bytes, body: bytes) -> None:
    wire.read_head(head)
    for read in (wire.read_hello, wire.read_offer, wire.read_open, wire.read_credit):
        read(body)
