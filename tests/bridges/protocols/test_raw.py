"""CAN frames as they are: identifiers as tokens, exact round trips, and who may send what."""

import random
from typing import Any

import pytest

from bridges.items import ERROR, EXTENDED, FD, REMOTE, STATE, SWITCH, CanFrame
from bridges.protocols.raw.judge import Names as TokenNames
from bridges.protocols.raw.judge import RawJudge
from bridges.protocols.raw.protocol import Raw
from bridges.protocols.selection import FULL, Selection, selection_of
from bridges.protocols.translator import Sent
from bus.names import Names, lines_of, names_from
from bus.wire.frame import pack
from bus.wire.notation import pattern_of, text_of
from tests.bridges.protocols.spoken_support import message, told, translator
from tests.bridges.protocols.spoken_support import wire as wired

LENGTHS = (*range(9), 12, 16, 20, 24, 32, 48, 64)
TUNNEL = Raw(root=("car",), send=("all",))


def raw(**settings: Any) -> Any:
    return translator(Raw(root=("car",), **settings), "frames")


def random_frame(chance: random.Random) -> CanFrame:
    extended = chance.random() < 0.5
    identifier = chance.randrange(1 << 29) | EXTENDED if extended else chance.randrange(1 << 11)
    if chance.random() < 0.5:
        marks = FD | chance.choice((0, SWITCH)) | chance.choice((0, STATE))
        return identifier, chance.randbytes(chance.choice(LENGTHS)), marks
    size = chance.randrange(9)
    marks = chance.choice((0, *range(9 << 4, 16 << 4, 16))) if size == 8 else 0
    return (
        (identifier | REMOTE, bytes(size), marks)
        if chance.random() < 0.2
        else (identifier, chance.randbytes(size), marks)
    )


@pytest.mark.parametrize("token", [1, 3, 8, 0x10, 0x80, 0x91, 0x94, 0xF7, 0x190, 0x1F0])
@pytest.mark.parametrize("size", [0, 7, 8])
def test_a_third_token_that_no_classic_frame_has_is_malformed(token: int, size: int) -> None:
    sent = raw(send=("all",)).send(pack(1, (*pattern_of("car/0x123"), token), bytes(size)), 0)
    assert sent == Sent(why="malformed")


def test_a_tunnel_is_exact() -> None:
    chance = random.Random(7)
    frames = [random_frame(chance) for _ in range(5000)]
    near, far = translator(TUNNEL, "frames"), translator(TUNNEL, "frames")
    found = near.receive(frames, 0.0)
    assert [frame for one in found for frame in far.send(one, 0.0).items] == frames
    assert near.wire.stats.rejected == {}


def test_patterns_of_frames() -> None:
    made = raw()
    frames = [
        (0x181, b"a", 0),
        (0x18FEF100 | EXTENDED, b"bb", 0),
        (0x123 | REMOTE, bytes(2), 0),
        (0x7, bytes(64), FD | SWITCH),
    ]
    assert told(made.receive(frames, 0), "car", "car/0x") == [
        ("car/0x181", b"a"),
        ("car/0x18fef100x", b"bb"),
        ("car/0x123r", bytes(2)),
        ("car/0x007/0x00000005", bytes(64)),
    ]


def test_a_named_identifier_has_its_pattern_both_ways() -> None:
    made = raw(ids={"0x123": ("engine", "rpm")}, send=("all",))
    found = made.receive([(0x123, b"x", 0), (0x123, b"y", FD)], 0)
    assert told(found, "engine", "rpm") == [("engine/rpm", b"x"), ("engine/rpm/0x00000004", b"y")]
    assert made.send(message("engine/rpm", b"x"), 0).items == ((0x123, b"x", 0),)
    assert made.send(message("engine/rpm/4", b"y"), 0).items == ((0x123, b"y", FD),)


@pytest.mark.parametrize(
    ("pattern", "data", "why"),
    [
        ("car/0x321", b"", ""),
        ("car/0x321r", b"", ""),
        ("car/0x322", b"", "not sent here"),
        ("car/0x321x", b"", "not sent here"),
        ("car", b"", "not sent here"),
        ("car/0x321/5/6", b"", "not sent here"),
        ("bus/0x321", b"", "not sent here"),
        ("car/0x321", bytes(12), ""),
        ("car/0x321", bytes(13), "malformed"),
        ("car/0x321", bytes(65), "oversize"),
        ("car/0x321/1", b"", "malformed"),
        ("car/0x321/12", b"", "malformed"),
        ("car/0x321r/4", b"", "malformed"),
        ("car/0x20000321", b"", "not sent here"),
    ],
)
def test_what_leaves(pattern: str, data: bytes, why: str) -> None:
    sent = raw(send=(0x321,)).send(message(pattern, data), 0)
    assert (sent.why, bool(sent.items)) == (why, not why)


def test_only_messages_leave() -> None:
    assert raw(send=("all",)).send(pack(2, pattern_of("car/0x123")), 0).why == "not sent here"


def test_an_identifier_above_its_kind_never_leaves() -> None:
    made = raw(send=("all",))
    for identifier in (0x800, ERROR | 0x123, EXTENDED | ERROR, 0xFFFFFFFF):
        assert not made.send(pack(1, (*pattern_of("car"), identifier)), 0).items


def test_what_comes_in_and_what_another_one_sends() -> None:
    made = raw(receive=("0x100-0x1ff", "0x18FEF100x"), send=(0x321,))
    frames: list[CanFrame] = [
        (0x100, b"", 0), (0x1FF, b"", 0), (0x200, b"", 0), (0x18FEF100, b"", 0),
        (0x18FEF100 | EXTENDED, b"", 0),
        (0x100 | REMOTE, b"", 0), (0x321, b"", 0),
    ]  # fmt: skip
    assert len(made.receive(frames, 0)) == 3
    assert made.wire.stats.rejected == {"foreign": 3, "another sender": 1}


@pytest.mark.parametrize(
    ("tokens", "enters", "leaves"),
    [
        ((1, 0), True, True),
        ((1, 0x321), True, True),
        ((9,), True, True),
        ((9, 4), True, True),
        ((1, 0x322), True, False),
        ((1, 0x400), False, False),
        ((1, 0x400, 4), False, False),
        ((1, ERROR), True, False),
        ((1,), False, False),
        ((2, 0x321), False, False),
    ],
)
def test_a_pattern_is_judged_by_its_identifier(tokens: tuple[int, ...], enters: bool, leaves: bool) -> None:
    sets = TokenNames((1,), {(9,): 0x321}), selection_of(["0x0-0x3ff"]), selection_of([0, 0x321])
    judge, sparing = RawJudge(*sets), RawJudge(*sets, spares=True)
    assert (judge.enters(tokens), judge.leaves(tokens)) == (enters, leaves)
    assert (sparing.enters(tokens), sparing.leaves(tokens)) == (enters and not leaves, leaves)


def test_a_standby_has_what_the_active_one_sends() -> None:
    made = Raw(root=("car",), send=(0x321,)).translator(wired("frames", may_act=lambda _: False))
    assert told(made.receive([(0x321, b"x", 0)], 0), "car", "car/0x") == [("car/0x321", b"x")]


def test_without_receive_all_comes_in_but_what_is_sent() -> None:
    made = raw(send=(0x321,))
    assert len(made.receive([(0x320, b"", 0), (0x321, b"", 0)], 0)) == 1
    assert made.wire.stats.rejected == {"another sender": 1}


def test_a_frame_that_no_controller_sends_is_counted() -> None:
    made = raw()
    assert made.receive([(1, bytes(9), 0), (1, bytes(65), FD)], 0) == []
    assert made.wire.stats.rejected == {"malformed": 2}


@pytest.mark.parametrize("seed", range(20))
def test_a_selection_is_the_set_that_it_says(seed: int) -> None:
    chance = random.Random(seed)
    items, wanted = list[int | str](), set[int]()
    for _ in range(chance.randrange(1, 6)):
        low, high = sorted((chance.randrange(2048), chance.randrange(2048)))
        mask = chance.randrange(2048)
        item, some = chance.choice(
            (
                (f"{low:#x}-{high:#x}", range(low, high + 1)),
                (low, (low,)),
                (f"{low:#x}/{mask:#x}", [one for one in range(2048) if one & mask == low & mask]),
            )
        )
        items.append(item)
        wanted |= set(some)
    made = selection_of(items)
    assert {one for one in range(2048) if one in made} == wanted
    assert list(made.singles(2048) or ()) == sorted(wanted)
    assert not any(one | EXTENDED in made or one | REMOTE in made for one in wanted)
    other = selection_of([chance.randrange(2048) for _ in range(3)])
    assert bool(made.overlap(other)) == any(one in made for one in (value for value, _ in other.pieces))
    assert Selection(None).overlap(made)
    assert all(mask & ~FULL == 0 for _, mask in made.pieces)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"receive": (0x800,)}, "0x800x"),
        ({"receive": ("0x2fffffffx",)}, "up to 0x1fffffffx"),
        ({"receive": ("0x200-0x100",)}, "a range goes up"),
        ({"receive": ("0x100-0x200x",)}, "of its kind"),
        ({"receive": ("x",)}, "no CAN identifier"),
        ({"receive": ("0x100/0x1000",)}, "no mask"),
        ({"send": ("all", 1)}, "all stands alone"),
        ({"ids": {"0x1": ("a",), "1": ("b",)}}, "twice"),
        ({"ids": {"0x1": ("a",), "0x2": ("a",)}}, "two identifiers"),
        ({"ids": {"0x1": ("car", "x")}}, "below root"),
        ({"root": ()}, "root"),
    ],
)
def test_wrong_settings_are_told(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Raw(**({"root": ("car",)} | settings))


def test_identifiers_are_read_and_written_everywhere_in_one_way() -> None:
    names = Names(["car", "car/0x"])
    for word in ("car/0x181", "car/0x18fef100x", "car/0x123r", "car/0x1fffffffxr"):
        assert names.show(pattern_of(word)) == word
        assert text_of(pattern_of(word).names).replace("0x00000", "0x") == word
    assert names.show(pattern_of("car/0x20000001")) == "car/0x20000001"
    assert Names(["car"]).show(pattern_of("car/0x181")) == "car/0x00000181"
    assert pattern_of('"0x1x"') != pattern_of("0x1x"), "a name in quotes stays one"
    assert names_from(lines_of(["car/0x"])) == ["car/0x"]
    for word in ("0x800r", "0x20000000x"):
        with pytest.raises(ValueError, match="no CAN identifier"):
            pattern_of(word)


def test_a_way_lists_what_it_can() -> None:
    assert len(Raw(receive=("0x100-0x1ff",)).way.inward or ()) == 256
    assert Raw(receive=("0x100x-0x1fffffffx",), send=(1,)).way == (
        ((("can",)),),
        (("can", 1), ("can", 1 | REMOTE)),
    )
    assert Raw().filters() is None
    assert Raw(receive=(1,), send=(2,)).filters() == ((1, FULL), (2, FULL), (2 | REMOTE, FULL))
