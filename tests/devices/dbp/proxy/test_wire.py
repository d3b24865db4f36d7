"""The frames between two proxies: the page's example, what is none, and no bytes that make reading raise."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.dbp.proxy import wire
from devices.dbp.proxy.wire import HEAD, Head, Hello, Target
from tests.helpers import ROOT


def test_the_page_s_example() -> None:
    page = (ROOT / "docs/wire/proxy.md").read_text()
    (example,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    lines = re.findall(r"^((?:(?:[0-9a-f]{2})+ )+) ", example, re.MULTILINE)
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


KIND = re.compile(r"(\d) (\w+)")
ROW = re.compile(r"^\| (\d \w+(?:, \d \w+)*) \| (0|yes) \|([^|]*)\|", re.MULTILINE)
SIZE = re.compile(r"(\d+) (bytes|KiB|MiB)$")
UNITS = {"bytes": 1, "KiB": 1024, "MiB": 1024**2}


def longest(body: str) -> int:
    """Return the longest body by the words of the page."""
    found = SIZE.search(body.strip())
    return int(found[1]) * UNITS[found[2]] if found else 4 * (body.strip() == "u32")


def rows() -> list[tuple[int, str, bool, int]]:
    """Return number and name of each kind, whether it is of a stream, and its longest body."""
    page = (ROOT / "docs/wire/proxy.md").read_text()
    return [
        (int(number), name, stream == "yes", longest(body))
        for kinds, stream, body in ROW.findall(page)
        for number, name in KIND.findall(kinds)
    ]


def test_the_page_has_every_kind() -> None:
    names = "HELLO OFFER OPEN DATA CREDIT CLOSE PING PONG".lower().split()
    assert [(number, name) for number, name, _, _ in rows()] == list(enumerate(names, 1))
    assert [getattr(wire, name.upper()) for name in names] == [*range(1, 9)]
    assert (wire.DATA_BYTES, wire.WINDOW_BYTES, wire.VERSION) == (32 << 10, 256 << 10, 1)


@pytest.mark.parametrize(("kind", "of_stream", "most"), [(row[0], row[2], row[3]) for row in rows()])
def test_a_body_of_exactly_the_page_s_bound_passes(kind: int, of_stream: bool, most: int) -> None:
    stream = int(of_stream)
    assert wire.read_head(HEAD.pack(kind, stream, most)) == Head(kind, stream, most)
    assert wire.read_head(HEAD.pack(kind, stream, 0)) == Head(kind, stream, 0)
    assert wire.read_head(HEAD.pack(kind, stream, most + 1)) is None
    assert wire.read_head(HEAD.pack(kind, 1 - stream, 0)) is None


def test_the_largest_offer_is_packed_and_one_byte_more_is_not() -> None:
    size = (1 << 20) - len(json.dumps({"s": {"x": ""}}))
    frame = wire.pack_offer({"s": {"x": "y" * size}})
    assert frame is not None
    assert wire.read_head(frame[: HEAD.size]) == Head(wire.OFFER, 0, 1 << 20)
    assert wire.pack_offer({"s": {"x": "y" * (size + 1)}}) is None


def test_a_frame_belongs_to_no_stream_and_is_empty_unless_said() -> None:
    assert wire.pack(wire.PING) == HEAD.pack(wire.PING, 0, 0)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"version": 1, "id": "a", "name": ""}', Hello("a", "")),
        (b'{"version": 0, "id": "a", "name": "b"}', "it speaks version 0, and this is 1"),
        (b'{"version": 1, "id": "", "name": "b"}', "its first frame is no hello"),
        (b'{"version": "1", "id": "a", "name": "b"}', "its first frame is no hello"),
        (b'{"version": true, "id": "a", "name": "b"}', "its first frame is no hello"),
        (b'{"version": false, "id": "a", "name": "b"}', "its first frame is no hello"),
        (b'{"version": 1, "id": "%s", "name": "%s"}' % (b"a" * 65, b"b" * 201), Hello("a" * 64, "b" * 200)),
        (b'{"version": 1, "id": "%s", "name": "%s"}' % (b"a" * 64, b"b" * 200), Hello("a" * 64, "b" * 200)),
    ],
)
def test_hellos(body: bytes, said: Hello | str) -> None:
    assert wire.read_hello(body) == said


def nested(depth: int) -> bytes:
    return b'{"s": ' + b'{"a": ' * (depth - 2) + b"{}" + b"}" * (depth - 1)


def test_an_offer_is_bounded_in_depth_and_items() -> None:
    """Two levels around what a catalog lists: the offer, and its services by name.

    No offer that fits a frame has too many items.
    """
    assert wire.read_offer(nested(18)) is not None
    assert wire.read_offer(nested(19)) is None
    commas = (1 << 19) - 3  # beside three containers
    assert wire.read_offer(b'{"s": {"a": [0' + b",0" * commas + b"]}}") is not None
    assert wire.read_offer(b'{"s": {"a": [0' + b",0" * (commas + 1) + b"]}}") is None


def test_what_is_no_service_is_left_out_of_an_offer() -> None:
    assert wire.read_offer(b'{"a": 5, "b": {}, "c": []}') == {"b": {}}


@pytest.mark.parametrize("body", [b"", b"\0\0\1", b"\0\0\0\1\0"])
def test_a_credit_of_another_length_is_none(body: bytes) -> None:
    assert wire.read_credit(body) == 0


def test_a_close_says_at_most_256_bytes() -> None:
    assert wire.pack_close(3) == HEAD.pack(wire.CLOSE, 3, 0)
    assert wire.pack_close(3, "x" * 300) == HEAD.pack(wire.CLOSE, 3, 256) + b"x" * 256
