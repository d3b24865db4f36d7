"""The files of a spool: order, bound, and what a killed process or a broken disk leaves behind."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest
from buscoupler_mqtt.flight import Flight
from buscoupler_mqtt.spool import Spool

BOUND = 1 << 20


def numbered(*numbers: int, size: int = 100) -> list[bytes]:
    return [number.to_bytes(4, "big") + bytes(size - 4) for number in numbers]


def numbers(messages: list[bytes]) -> list[int]:
    return [int.from_bytes(message[:4], "big") for message in messages]


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    made = Spool(str(tmp_path / "spool"), BOUND)
    yield made
    made.close()


def again(spool: Spool, tmp_path: Path) -> Spool:
    spool.close()
    return Spool(str(tmp_path / "spool"), BOUND)


def test_first_in_first_out(spool: Spool) -> None:
    assert spool.turn(numbered(*range(10)), 0, False, 3)[:6] == (10, numbered(0, 1, 2), 10, False, "", 0)
    assert numbers(spool.turn(numbered(10), 2, False, 100).read) == [*range(3, 11)]
    assert spool.turn([], 9, False, 5)[:6] == (0, [], 0, False, "", 0)


def test_what_is_not_acknowledged_is_read_again(spool: Spool, tmp_path: Path) -> None:
    spool.turn(numbered(*range(10)), 0, False, 6)
    assert numbers(spool.turn([], 2, True, 2).read) == [2, 3]
    spool = again(spool, tmp_path)
    assert spool.waiting == 8
    assert numbers(spool.turn(numbered(10), 0, False, 100).read) == [*range(2, 11)]
    spool.close()


def test_the_bound_holds_and_room_comes_back(spool: Spool, tmp_path: Path) -> None:
    wrote = read = 0
    for _ in range(50):
        turn = spool.turn(numbered(*range(wrote, wrote + 100), size=1000), 0, False, 0)
        wrote += turn.written
        assert turn.full == (turn.written < 100)
    assert 900_000 < sum(file.stat().st_size for file in tmp_path.glob("spool/*.log")) <= BOUND
    for _ in range(20):  # as much again passes
        turn = spool.turn([], 0, False, 200)
        assert numbers(turn.read) == [*range(read, read + 200)]
        read += 200
        turn = spool.turn(numbered(*range(wrote, wrote + 200), size=1000), 200, False, 0)
        wrote += turn.written
        assert spool.size_bytes <= BOUND
    assert wrote > read
    assert numbers(spool.turn([], 0, False, 10_000).read) == [*range(read, wrote)]
    assert spool.turn([], wrote - read, False, 1).left == 0
    assert len(list(tmp_path.glob("spool/*.log"))) <= 2


def test_two_processes_cannot_use_it(spool: Spool, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="open in another process"):
        Spool(str(tmp_path / "spool"), BOUND)


@pytest.mark.parametrize("cut", [1, 4, 99, 100, 101, 107])
def test_a_record_that_was_not_written_to_its_end(spool: Spool, tmp_path: Path, cut: int) -> None:
    spool.turn(numbered(1), 0, False, 0)
    spool.turn(numbered(2), 0, False, 0)
    spool.close()
    file = max(tmp_path.glob("spool/*.log"))
    file.write_bytes(file.read_bytes()[:-cut])
    spool = Spool(str(tmp_path / "spool"), BOUND)
    turn = spool.turn(numbered(3), 0, False, 9)
    assert (numbers(turn.read), turn.damaged, turn.left) == ([1, 3], 1, 2)
    spool.close()


def test_noise_costs_the_turn_that_it_is_in(spool: Spool, tmp_path: Path) -> None:
    for number in range(5):
        spool.turn(numbered(number), 0, False, 0)
    spool.close()
    (first,) = tmp_path.glob("spool/*.log")
    data = bytearray(first.read_bytes())
    data[250] ^= 1
    first.write_bytes(data)
    spool = Spool(str(tmp_path / "spool"), BOUND)
    turn = spool.turn([], 0, False, 99)
    assert (numbers(turn.read), turn.damaged, turn.left) == ([0, 2, 3, 4], 1, 4)
    spool.close()


@pytest.mark.parametrize("how", ["deleted", "moved", "replaced by a copy"])
def test_files_that_go_are_told_with_their_messages_and_take_none(
    spool: Spool, tmp_path: Path, how: str
) -> None:
    place, away = tmp_path / "spool", tmp_path / "away"
    spool.turn(numbered(*range(10)), 0, False, 4)
    place.rename(away)
    if how == "deleted":
        shutil.rmtree(away)
    elif how == "replaced by a copy":
        shutil.copytree(away, place)
    turn = spool.turn(numbered(10), 3, True, 100)
    assert (turn.written, turn.read, turn.left, turn.damaged, turn.gone) == (0, [], 7, 0, True)
    assert "was deleted or moved away while it was open, with 7 messages: put it back" in turn.fault
    if how == "moved":
        away.rename(place)
        turn = spool.turn(numbered(10), 0, False, 100)
        assert (turn.written, numbers(turn.read), turn.gone) == (1, [*range(3, 11)], False)


def test_a_full_disk_is_a_fault_and_nothing_is_half_written(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    monkeypatch.setattr(os, "pwrite", lambda *_: _full())
    turn = spool.turn(numbered(1), 0, False, 1)
    assert turn[:3] == (0, [], 0)
    assert turn.fault == "No space left on device"
    monkeypatch.undo()
    assert numbers(spool.turn(numbered(2), 0, False, 9).read) == [2]


def _full() -> int:
    raise OSError(28, "No space left on device")


def earlier(directory: Path, segments: dict[int, list[bytes]], done: tuple[int, int] | None) -> None:
    """Write a spool as earlier versions did."""
    directory.mkdir()
    for number, messages in segments.items():
        records = (len(one).to_bytes(4, "big") + crc32(one).to_bytes(4, "big") + one for one in messages)
        (directory / f"{number:010}.spool").write_bytes(b"".join(records))
    if done:
        head = done[0].to_bytes(8, "big") + done[1].to_bytes(8, "big")
        (directory / "done").write_bytes(head + crc32(head).to_bytes(4, "big"))


@pytest.mark.parametrize(
    ("done", "left"),
    [(None, [1, 2, 3, 4, 5]), ((1, 108), [2, 3, 4, 5]), ((2, 0), [3, 4, 5]), ((3, 108), []), ((9, 0), [])],
)
def test_a_spool_of_an_earlier_version_is_taken_over(
    tmp_path: Path, done: tuple[int, int] | None, left: list[int]
) -> None:
    directory = tmp_path / "old"
    earlier(directory, {1: numbered(1, 2), 2: numbered(3, 4), 3: numbered(5)}, done)
    for _ in range(2):
        spool = Spool(str(directory), BOUND)
        assert spool.waiting == len(left)
        assert numbers(spool.turn([], 0, False, 99).read) == left
        assert not list(directory.glob("*.spool"))
        spool.close()
    assert not (directory / "done").exists()


def test_a_full_spool_of_an_earlier_version_is_taken_over_whole(tmp_path: Path) -> None:
    directory = tmp_path / "old"
    earlier(directory, {n: numbered(*range(1000 * n, 1000 * n + 1000), size=4) for n in range(1, 90)}, None)
    spool = Spool(str(directory), BOUND)
    assert spool.waiting == 89_000
    spool.close()


@pytest.mark.parametrize("spoil", [b"", b"x", bytes(20), b"\xff" * 20])
def test_damage_in_an_earlier_spool_costs_its_segment_or_repeats(tmp_path: Path, spoil: bytes) -> None:
    directory = tmp_path / "old"
    earlier(directory, {1: numbered(1, 2, 3), 2: numbered(4)}, (1, 108))
    (directory / "done").write_bytes(spoil)
    data = bytearray((directory / "0000000001.spool").read_bytes())
    data[250] ^= 1
    (directory / "0000000001.spool").write_bytes(data)
    spool = Spool(str(directory), BOUND)
    assert (numbers(spool.turn([], 0, False, 9).read), spool.damaged) == ([1, 2, 4], 1)
    spool.close()


def test_a_packet_that_the_broker_blames_is_found() -> None:
    flight = Flight[str]()
    flight.up(10)
    for number, item in enumerate("abc"):
        flight.begin(number, item)
    assert flight.room == 7
    assert flight.down(blamed=True) == (["a", "b", "c"], None)
    flight.up(10)
    assert flight.room == 1
    flight.begin(1, "a")
    assert (flight.room, flight.end(1), flight.end(1)) == (0, "a", None)
    flight.begin(2, "b")
    assert flight.down(blamed=True) == ([], "b")
    flight.up(10)
    assert flight.room == 10
    flight.begin(3, "c")
    assert flight.down(blamed=False) == (["c"], None)
