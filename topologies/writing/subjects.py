"""Cyphal subjects that are given out: ranges in a topology become numbers, which are never changed. Pure."""

import re
from typing import NamedTuple

from bridges.media.subject import Subject, bounds
from bus.errors import TopologyError
from bus.key_types import Names
from bus.wire.notation import text_of
from bus.wire.pattern import Pattern
from topologies.checks.subjects import wires_with_subjects
from topologies.wiring.segments import Wiring

_LINE = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_KEY = """["']?subject["']?[ \t]*:\\s*"""


class Given(NamedTuple):
    """A number that was given out: `subject` is the place with the range that it replaces."""

    names: Names
    subject: Subject
    number: int

    def __str__(self) -> str:
        return f"{text_of(self.names)}: {self.number}"


def give_out(wiring: Wiring) -> list[Given]:
    """Return a number for each range, in the order of the file: behind the highest, else a free one.

    A pattern that has a number on the wire gets that. Raises `TopologyError` if a range is full.
    """
    wires = wires_with_subjects(wiring)
    used = {
        wire: {number for _, medium in sides for number in medium.subjects_of_tmq}
        for wire, sides in wires.items()
    }
    known = {
        (wire, Pattern(*names)): one.number
        for wire, sides in wires.items()
        for _, medium in sides
        for names, one in medium.pattern_subjects.items()
        if one.number is not None
    }
    made = dict[tuple[int, int], Given]()
    for place, (names, one, among) in sorted(_open(wiring).items()):
        pattern = Pattern(*names)
        same = next((known[wire, pattern] for wire in among if (wire, pattern) in known), None)
        number = same or _free(names, str(one.subject), set[int]().union(*(used[wire] for wire in among)))
        made[place] = Given(names, one, number)
        for wire in among:
            used[wire].add(number)
            known.setdefault((wire, pattern), number)
    return list(made.values())


def _open(wiring: Wiring) -> dict[tuple[int, int], tuple[Names, Subject, list[str]]]:
    """Return the patterns without a number by their place in the file, each with its wires."""
    found = dict[tuple[int, int], tuple[Names, Subject, list[str]]]()
    for wire, sides in wires_with_subjects(wiring).items():
        for _, medium in sides:
            for names, one in medium.pattern_subjects.items():
                if one.number is None:
                    place = one.where.line, one.where.column
                    found.setdefault(place, (names, one, []))[2].append(wire)
    return found


def _free(names: Names, text: str, used: set[int]) -> int:
    low, high = bounds(text)
    first = max((number for number in used if low <= number <= high), default=low - 1) + 1
    found = first if first <= high else next((n for n in range(low, high + 1) if n not in used), None)
    if found is None:
        raise TopologyError(f"{text_of(names)}: all subjects of {text} are given out: write a longer range")
    return found


def written(text: str, given: list[Given]) -> str:
    """Return the text of a topology with numbers in place of ranges; all else stays as it is.

    Raises `TopologyError` if a range does not stand where its pattern is.
    """
    starts = [0, *(found.end() for found in _LINE.finditer(text))]
    mark = text.startswith("\ufeff")
    for one in sorted(given, key=lambda one: one.subject.where, reverse=True):
        where, word = one.subject.where, re.escape(str(one.subject.subject))
        at = starts[where.line - 1] + where.column - 1 + (mark and where.line == 1)
        value = f"""(["']?){word}\\1"""
        found = re.compile(value).match(text, at) or re.compile(_KEY + value).search(text, at)
        if found is None:
            told = f"{where.file}:{where.line}: {text_of(one.names)}: the range does not stand here itself"
            raise TopologyError(f"{told} (a variable?): write it, or a number")
        begin = found.start(1)
        text = text[:begin] + str(one.number) + text[found.end() :]
    return text
