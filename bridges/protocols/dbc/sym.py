"""A SYM as cantools reads it, and without what it refuses: signals by their line, messages by name. Pure."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from bridges.protocols.dbc.layout import Flaw

TRIES: Final = 8
"""The most times that a SYM is parsed, each without one more entry that is wrong."""

_SHOWN: Final = 40
_PLACE: Final = re.compile(r"Invalid syntax at line (\d+), column (\d+)")
_NAMED: Final = re.compile(r"\bin message (\w+)")
_SECTION: Final = re.compile(r"\s*(?:\[\"?([^\]\"]*)\"?\]|\{)")
_SIGNAL: Final = re.compile(r"\s*(?:Var|Sig)\s*=\s*(\"[^\"]*\"|\S+)")
_PAGE: Final = re.compile(
    r'^([ \t]*+Mux=(?:"[^"\n]*+"|[^\s"]*+)[ \t]*+\d++,\d++[ \t]++)(?=[A-F][0-9A-F]*+h\b)', re.MULTILINE
)


def mended_sym(text: str) -> str:
    """Return a SYM with the digit that cantools wants before the number of a page, such as FFh."""
    return _PAGE.sub(r"\g<1>0", text)


def without(text: str, said: str) -> tuple[str, list[Flaw]] | None:
    """Return a SYM without what cantools refused with some words, and the flaws; None if it is all of it."""
    lines = text.split("\n")
    place, named = _PLACE.search(said), _NAMED.search(said)
    if place is not None and (found := _SIGNAL.match(lines[int(place[1]) - 1])) is not None:
        return _without_signal(lines, int(place[1]) - 1, place[2], found[1])
    gone = [number for number, name in enumerate(_sections(lines)) if named is not None and name == named[1]]
    if named is None or not gone:
        return None
    for number in gone:
        lines[number] = ""
    words = " ".join(said.removeprefix("SYM: ").strip('"').split())[: 3 * _SHOWN].rstrip(".")
    return "\n".join(lines), [Flaw(f"line {gone[0] + 1}: {named[1]}: {words}: left out", "")]


def _without_signal(lines: list[str], at: int, column: str, name: str) -> tuple[str, list[Flaw]]:
    """Return a text without the line of a signal, and the flaws: one for each message that has it."""
    sections, shown = list(_sections(lines)), " ".join(lines[at].split())[:_SHOWN]
    used = [at] if sections[at] else _uses(lines, sections, name)
    why = f"line {at + 1}: {shown}: column {column} is not understood: left out"
    flaws = [Flaw(why, sections[number], blocks=True) for number in used] or [Flaw(why, "")]
    for number in {at, *used}:
        lines[number] = ""
    return "\n".join(lines), flaws


def _uses(lines: Sequence[str], sections: Sequence[str], name: str) -> list[int]:
    """Return the lines in messages that name a signal."""
    found = ((number, _SIGNAL.match(line)) for number, line in enumerate(lines) if sections[number])
    return [number for number, match in found if match is not None and match[1] == name]


def _sections(lines: Sequence[str]) -> Iterator[str]:
    """Yield the message in which each line is; "" for those in none."""
    name = ""
    for line in lines:
        if (found := _SECTION.match(line)) is not None:
            name = found[1] or ""
        yield name
