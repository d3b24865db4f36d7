"""The messages of both generations, byte for byte as the page has them, and what is no message."""

import re
from itertools import pairwise
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.serving.limits import Limits
from devices.syndication.bounds import Bounds
from devices.syndication.wire.cutter import Cutter
from devices.syndication.wire.messages import (
    REFUSED,
    BrokerRequest,
    Difference,
    Form,
    Message,
    Publication,
    Refused,
    Subscription,
    assignment,
    error,
)
from tests.devices.syndication.wire.objects import objects, whole
from tests.helpers import ROOT

PAGE = (ROOT / "docs/wire/syndication.md").read_text()
RANGE = re.compile(r"^\| ([0-9a-f]{2}) to ([0-9a-f]{2}) \|.*\| (\w+) \|$", re.MULTILINE)
BLOCK = re.compile(r"^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
HEX = re.compile(r"^((?:(?:[0-9a-f]{2})+ )+) ", re.MULTILINE)
EXAMPLES = [b"".join(map(bytes.fromhex, HEX.findall(block))) for block in BLOCK.findall(PAGE)]
pack = msgpack.packb


def cut(data: bytes, bounds: Bounds | None = None) -> list[Any]:
    cutter = Cutter(bounds or Bounds())
    messages = cutter.cut(data)
    assert (cutter.fault, cutter.waiting) == ("", 0)
    return [shown(message) for message in messages]


def shown(message: Message) -> Any:
    """A message as what compares."""
    if isinstance(message, Publication):
        return message.id, message.metadata, message.value
    return message


def test_the_page_s_examples() -> None:
    plain, tagged, query, tagged_query, difference, wrong = EXAMPLES
    value = bytes.fromhex("cb4035800000000000")
    for data in (plain, tagged):
        (message,) = Cutter(Bounds()).cut(data)
        assert shown(message) == ("a1", {"Room": "410"}, value)
        assert isinstance(message, Publication)
        assert (message.packed(Form.UNTAGGED), message.packed(Form.TAGGED)) == (plain, tagged)
    assert (len(plain), len(tagged)) == (23, 44)
    assert cut(query) == [Subscription("has Room", Form.UNTAGGED)]
    assert cut(tagged_query) == [Subscription("has Room", Form.TAGGED)]
    first = Difference(["a1"])
    assert (first.packed(Form.UNTAGGED), first.packed(Form.TAGGED)) == (difference, b"\x02" + difference)
    assert error("bad") == wrong


def test_an_assignment_names_the_address_three_times() -> None:
    keys = ("BrokerID", "ClientBrokerAddr", "CoordBrokerAddr")
    assert assignment("h:1") == b"\x08" + pack({"BrokerInfo": dict.fromkeys(keys, "h:1")})


def generations() -> dict[int, str]:
    """The page's table: of each first byte, the generation."""
    table: dict[int, str] = {}
    for low, high, generation in RANGE.findall(PAGE):
        numbers = range(int(low, 16), int(high, 16) + 1)
        assert not table.keys() & numbers
        table.update(dict.fromkeys(numbers, generation))
    return table


def test_the_page_s_table_has_every_first_byte() -> None:
    assert sorted(generations()) == list(range(256))


@pytest.mark.parametrize("first", range(256))
def test_the_first_byte_tells_the_generation(first: int) -> None:
    cutter = Cutter(Bounds())
    messages = cutter.cut(bytes([first]))
    generation = "none" if cutter.fault else "tagged" if cutter.tagged else "untagged"
    assert generation == generations()[first]
    empty = first in (0x80, 0x90, 0xA0)  # an empty map, array or string is an object already
    assert len(messages) == empty
    assert cutter.waiting == (not empty and not cutter.fault)


def test_every_legal_first_message_is_cut_and_no_two_generations_begin_alike() -> None:
    texts = ["x" * size for size in (0, 1, 31, 32, 255, 256, 4096)]
    untagged = [pack(text) for text in texts] + [pack(text.encode()) for text in texts]
    # Longer than they need be.
    untagged += [
        b"\xda\x00\x01x",
        b"\xdb\x00\x00\x00\x01x",
        b"\xc6\x00\x00\x00\x01x",
    ]
    arrays = [head + b"\xa1i\x80\x05" for head in (b"\x93", b"\xdc\0\3", b"\xdd\0\0\0\3")]
    pairs = pack("UUID") + pack("i") + pack("Metadata") + pack({}) + pack("Value") + pack(5)
    maps = [head + pairs for head in (b"\x83", b"\xde\0\3", b"\xdf\0\0\0\3")]
    query = b"\1" + pack({"Query": "q", "UUID": "u"})
    for data in untagged:
        assert isinstance(cut(data)[0], Subscription)
    for data in (*arrays, *(b"\0" + body for body in arrays + maps)):
        assert cut(data) == [("i", {}, b"\5")]
    firsts = [{data[0] for data in untagged + arrays}, {0, query[0]}]
    assert not firsts[0] & firsts[1]


stream_parts = st.one_of(
    st.text(max_size=40),
    st.tuples(
        st.text(max_size=10), st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3), objects
    ),
)


@given(st.lists(stream_parts, max_size=5), st.booleans(), st.data())
def test_a_stream_is_cut_the_same_however_it_comes(
    parts: list[Any], tagged: bool, data: st.DataObject
) -> None:
    stream = b"".join(map(tagged_form if tagged else pack, parts))
    places = st.lists(st.integers(0, len(stream)), max_size=8).map(sorted)
    cutter = Cutter(Bounds())
    ends = [0, *data.draw(places), len(stream)]
    messages = [message for begin, end in pairwise(ends) for message in cutter.cut(stream[begin:end])]
    assert not cutter.fault
    form = Form(tagged)
    expected = [Subscription(p, form) if isinstance(p, str) else (p[0], p[1], pack(p[2])) for p in parts]
    assert [shown(message) for message in messages] == expected == cut(stream)
    cutter = Cutter(Bounds())
    assert [shown(m) for i in range(len(stream)) for m in cutter.cut(stream[i : i + 1])] == expected


def test_a_message_that_comes_in_two_parts_behind_another() -> None:
    stream = pack("q") + pack(["i", {"k": "v"}, [1, 2]])
    for size in range(3, len(stream)):
        cutter = Cutter(Bounds())
        assert [shown(m) for m in cutter.cut(stream[:size])] == [Subscription("q", Form.UNTAGGED)]
        assert [shown(m) for m in cutter.cut(stream[size:])] == [("i", {"k": "v"}, b"\x92\1\2")]


def tagged_form(part: Any) -> bytes:
    if isinstance(part, str):
        return b"\1" + bytes(pack({"UUID": "u", "Query": part}))
    return b"\0" + bytes(pack({"Value": part[2], "UUID": part[0], "Metadata": part[1]}))


@pytest.mark.parametrize(
    "value",
    ["c0", "ca7fc00000", "cb7ff8000000000001", "cf0000000000000001", "cfffffffffffffffff",
     "d30000000000000001", "d9026869", "a2fffe", "c40161", "d6ff00000000",
     "c70cff" + "ff" * 12, "82016101a162", "81c081c0c0",
     "92c3dc0001c2"],
)  # fmt: skip
def test_a_value_passes_as_it_came(value: str) -> None:
    raw = bytes.fromhex(value)
    (message,) = Cutter(Bounds()).cut(b"\x93\xa1i\x80" + raw)
    assert isinstance(message, Publication)
    assert message.packed(Form.UNTAGGED) == b"\x93\xa1i\x80" + raw
    assert message.packed(Form.TAGGED) == b"\0\x83\xa4UUID\xa1i\xa8Metadata\x80\xa5Value" + raw


def test_what_clients_of_several_libraries_send() -> None:
    python2 = {b"UUID": b"i", b"Metadata": {b"Room": b"410", b"Tags": [b"a"]}, b"Value": b"raw"}
    assert cut(b"\0" + pack(python2)) == [("i", {"Room": "410", "Tags": ["a"]}, pack(b"raw"))]
    old = {"UUID": "i" * 40, "Metadata": {"k" * 40: "v" * 40}, "Value": 1}
    assert cut(b"\0" + pack(old, use_bin_type=False)) == [("i" * 40, {"k" * 40: "v" * 40}, b"\1")]
    assert cut(b"\0" + pack({"UUID": "i", "Metadata": None, "Value": 1})) == [("i", {}, b"\1")]
    assert cut(b"\0" + pack(["i", {"Room": None}, 1])) == [("i", {"Room": None}, b"\1")]
    assert cut(b"\0" + pack({"UUID": "i"})) == [("i", {}, b"\xc0")]
    assert cut(b"\0" + pack({"UUID": "", "More": 1, 7: 7, "Value": 2})) == [("", {}, b"\2")]
    assert cut(pack(["i", None, 1])) == [("i", {}, b"\1")]


def test_a_client_that_puts_a_tag_before_a_string_is_told_arrays() -> None:
    assert cut(b"\1" + pack("q") + b"\1" + pack({"Query": "q"})) == [
        Subscription("q", Form.ARRAYS),
        Subscription("q", Form.TAGGED),
    ]
    assert Publication("i", {"k": "v"}, b"\5").packed(Form.ARRAYS) == b"\0" + pack(["i", {"k": "v"}, 5])
    difference = Difference(["i"])
    assert difference.packed(Form.ARRAYS) == difference.packed(Form.TAGGED)


def test_a_client_that_lost_its_broker_asks_for_one() -> None:
    lost = {"LocalBrokerAddr": "127.0.0.1:4444", "IsPublisher": True, "UUID": "i"}
    first, second = cut(b"\3" + pack(lost) + b"\3\x80")
    assert isinstance(first, BrokerRequest)
    assert isinstance(second, BrokerRequest)


def test_of_equal_keys_the_last_holds() -> None:
    twice = b"\x82\xa1k\1\xa1k\2"
    assert cut(b"\x93\xa1i" + twice + b"\5") == [("i", {"k": 2}, b"\5")]
    assert cut(b"\x93\xa1i" + b"\x82\xa1k\1\xc4\1k\2" + b"\5") == [("i", {"k": 2}, b"\5")]
    assert cut(b"\0\x83\xa4UUID\xa1i\xa5Value\1\xa5Value\2") == [("i", {}, b"\2")]


def test_metadata_are_said_again_as_text() -> None:
    (message,) = Cutter(Bounds()).cut(b"\x93\xa1i\x81\xc4\1k\xc4\1v\5")
    assert isinstance(message, Publication)
    assert message.packed(Form.UNTAGGED) == pack(["i", {"k": "v"}, 5])


LONG_ID = "i" * 201
NO_TIME = b"\x93\xa1i\x81\xa1k\xc7\x0c\xff" + b"\xff" * 12 + b"\1"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (pack([]), "publication"),
        (pack(["i", {}]), "publication"),
        (pack(["i", {}, 1, 2]), "publication"),
        (b"\0" + pack({}), "publication"),
        (b"\0" + pack({"Value": 1}), "publication"),
        (pack([1, {}, 1]), "id"),
        (pack([None, {}, 1]), "id"),
        (b"\x93\xa1\xff\x80\1", "id"),
        (pack([LONG_ID, {}, 1]), "id"),
        (pack(["i", [], 1]), "metadata"),
        (pack(["i", "k", 1]), "metadata"),
        (pack(["i", {1: 1}, 1]), "metadata"),
        (pack(["i", {"k": {1: 1}}, 1]), "metadata"),
        (b"\x93\xa1i\x81\xa1\xff\1\1", "metadata"),
        (b"\x93\xa1i\x81\xa1k\xc4\1\xff\1", "metadata"),
        (NO_TIME, "metadata"),
        (b"\xa1\xff", "query"),
        (b"\1" + pack({"UUID": "u"}), "query"),
        (b"\1" + pack({"Query": 5}), "query"),
        (pack({"New": [], "Del": []}), "difference"),
        (b"\2" + pack({"New": [], "Del": []}), "difference"),
    ],
)
def test_a_whole_object_that_is_no_message_is_refused_and_the_rest_is_read(data: bytes, reason: str) -> None:
    good = tagged_form("q") if data[0] < 0x80 else pack("q")
    first, second = cut(data + good)
    assert isinstance(first, Refused)
    assert first[:2] == (reason, Form(data[0] < 0x80))
    assert bool(first.answer) == (reason == "query")
    assert second == Subscription("q", first.form)


def test_the_page_has_every_reason() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == set(REFUSED)


def test_the_longest_id_is_legal() -> None:
    assert cut(pack([LONG_ID[1:], {}, 1])) == [(LONG_ID[1:], {}, b"\1")]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"GET / HTTP/1.1", "0x47 is no tag"),
        (b"\4" + pack({"BrokerInfo": {}}), "0x04 is no tag"),
        (b"\3" + pack(""), "no message begins with 0xa0"),
        (tagged_form("q") + pack("q"), "0xa1 is no tag"),
        (tagged_form("q") + b"\0\5", "no message begins with 0x05"),
        (tagged_form("q") + b"\1" + pack([1]), "no message begins with 0x91"),
        (pack("q") + b"\0", "no message begins with 0x00"),
        (pack("q") + b"\xc0", "no message begins with 0xc0"),
        (pack("q") + b"\xdb\x40\0\0\0", "longer than 65536 bytes"),
    ],
)
def test_a_stream_without_framing_has_a_fault_and_what_came_before_is_kept(data: bytes, said: str) -> None:
    cutter = Cutter(Bounds())
    messages = cutter.cut(data)
    assert messages == [Subscription("q", Form(data[0] == 1))] * (data[0] in b"\1\xa1")
    assert (cutter.fault, cutter.waiting) == (said, 0)
    assert cutter.cut(pack("q")) == []


@given(
    st.binary(max_size=60),
    st.sampled_from([b"", b"\0\x83\xa4UUID", b"\x93", b"\x93\xa1i\x81\xa1k", b"\1\x81"]),
)
def test_no_bytes_raise(noise: bytes, start: bytes) -> None:
    cutter = Cutter(Bounds(object_bytes=50))
    messages = cutter.cut(start) + cutter.cut(noise)
    for message in messages:
        if isinstance(message, Publication):
            assert whole(message.packed(Form.UNTAGGED)).at == len(message.packed(Form.UNTAGGED))
            assert whole(message.packed(Form.TAGGED)[1:]).at == len(message.packed(Form.TAGGED)) - 1
    assert cutter.waiting <= 50 + 1


def test_a_message_is_packed_once_for_each_generation() -> None:
    publication = Publication("i", {}, b"\1")
    for form in (Form.UNTAGGED, Form.TAGGED):
        assert publication.packed(form) is publication.packed(form)


def test_the_longest_difference_fits_a_queue() -> None:
    bounds = Bounds()
    longest = Difference(["i" * bounds.id_bytes] * bounds.producers)
    assert len(longest.packed(Form.TAGGED)) < 0.8 * 2**20 < Limits().queue_bytes
