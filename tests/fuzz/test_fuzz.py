"""Every parser against mutated inputs, against what once broke it, and against inputs of twice the size."""

from collections.abc import Callable
from random import Random

import pytest

from bridges.protocols import PROTOCOLS
from tests.fuzz import work
from tests.fuzz.judge import FOUND, Broken, families, found, fuzz, in_bytes, judge, keep, lines_of, result
from tests.fuzz.target import INPUTS, Pieces, Target
from tests.fuzz.targets import TARGETS
from tests.helpers.kinds import has_each
from tests.helpers.seeds import SEED

every_target = pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)


@pytest.mark.timeout(600)  # against a parser that does not end, on however slow a machine
@every_target
def test_no_input_breaks_a_parser(target: Target) -> None:
    try:
        fuzz(target, target.inputs, SEED)
    except Broken as broken:
        broken.add_note(f"the input is kept in {keep(broken)}, which all runs try: commit it with the cure")
        raise


@every_target
def test_what_broke_a_parser_does_so_no_more(target: Target) -> None:
    for path in found(target):
        for chance in range(16):
            judge(target, path.read_bytes(), Random(chance))


@pytest.mark.timeout(600)  # the lines are counted, so a slow machine must not fail it
@every_target
def test_the_work_is_linear_in_the_input(target: Target) -> None:
    for once, twice in families(target, target.size):
        few, many = lines_of(target, [once]), lines_of(target, [twice])
        assert many <= 3 * few + 2000, (once[:40], few, many)
    for once, twice in () if target.whole else families(target, 512, 16_384):
        few, many = lines_of(target, in_bytes(once)), lines_of(target, in_bytes(twice))
        assert many <= 3 * few + 2000, (once[:40], "byte by byte", few, many)


def test_lines_are_counted_alike_with_and_without_a_compiler() -> None:
    def fed() -> None:
        for target in list(TARGETS.values())[::20]:
            result(target, [*target.seeds()[:2]])

    fed()  # what is done once is done
    assert work.in_python(fed) > 200
    assert abs(work.lines_of(fed) - work.in_python(fed)) < 10, "more than the lines of who counts"


def test_a_target_with_few_inputs_says_why() -> None:
    assert [
        target.name for target in TARGETS.values() if (target.inputs < INPUTS) is not bool(target.why)
    ] == []


def test_targets_has_each_protocol() -> None:
    ours = {key for key, kind in PROTOCOLS.known() if kind.MAKE.startswith("bridges.")}
    has_each("TARGETS", {name.partition("-")[0] for name in TARGETS} & ours, ours)


def test_every_regression_file_has_a_target() -> None:
    assert {path.name for path in FOUND.glob("*")} <= TARGETS.keys()


def test_a_broken_parser_is_noticed() -> None:
    def quits(pieces: Pieces) -> object:
        raise KeyError if b"\x00\x00" in b"".join(pieces) else ValueError

    def forgets(pieces: Pieces) -> object:
        return pieces[-1]

    def copies(pieces: Pieces) -> object:
        return [b"".join(piece for piece in pieces[:end]) for end in range(len(pieces))]

    def target(feed: Callable[[Pieces], object], whole: bool) -> Target:
        return Target("t", "", feed, lambda: [b"valid"], (ValueError,), whole)

    with pytest.raises(Broken, match="KeyError"):
        fuzz(target(quits, True), 10_000, 19)
    with pytest.raises(Broken, match="in pieces"):
        fuzz(target(forgets, False), 100, 19)
    few, many = (lines_of(target(copies, False), in_bytes(bytes(size))) for size in (512, 1024))
    assert many > 3 * few + 2000
