"""The signals that a command asks for by name: those of `--signal`, and when the condition of `--where`
holds. What it names and the capture does not have is told, with what may be meant."""

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Final

from bus.names import RESERVED, texts
from bus.text import closest, nearest, plain
from bus.wire.notation import names_in
from pipeline.errors import PipelineError
from pipeline.jobs.record import OpenCapture

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pipeline.analysis.signals import SignalPlace
    from pipeline.signals.conditions import Condition
    from pipeline.signals.pieces import Source
    from pipeline.signals.wanted import Wanted

_SPANS_MOST: Final = 100_000
_ENGINES: Final = ("pyspark", "py4j", "grpc")
_TYPES: Final = re.compile(r"cast|coerc|argument type", re.IGNORECASE)
"""The words of engines for a text where a number has to be."""
_NONE: Final = "no signal of the capture"
_SHOWN: Final = 40


def form_of(word: str) -> tuple[str, str]:
    """Return the pattern and the form of `PATTERN=FORM`; the form may have `=` in it."""
    pattern, _, form = word.rpartition("=") if "=struct:" not in word else word.partition("=")
    return pattern, form


def condition(text: str) -> "Condition":
    """Read a condition. Raises `PipelineError` if no signal is in it."""
    from pipeline.signals.conditions import parse

    try:
        return parse(text)
    except ValueError as error:
        raise PipelineError(f"--where: {error}") from None


def check_names(ends: Sequence[str], source: "Source", asked: "Wanted", found: "DataFrame") -> None:
    """Raise `PipelineError` for a name that neither a signal that was found has, nor another one of the
    capture, nor one of its databases. `found` has the columns `pipeline.signals.blocks.KEYS`."""
    from pipeline.analysis.signals import NAMES_MOST, signals_in
    from pipeline.signals.ends import ends_with, like

    missing = [end for end in ends if not any(one.has(end) for one in asked.databases)]
    known = signals_in(found) if missing else set()
    missing = [end for end in missing if not any(ends_with(name, end) for name in known)]
    every = _every_name(source, asked) if missing else set()
    for end in missing:
        if not any(ends_with(name, end) for name in every) and len(every) < NAMES_MOST:
            raise PipelineError(plain(f"--signal: {end} is {_NONE}{like(end, every)}"))


def unknown(options: argparse.Namespace, asked: "Wanted", capture: OpenCapture) -> Iterator[str]:
    """Yield a line for each place of a database (`--dbc WHERE=FILE`) that is no segment and no pattern of a
    capture, and for each name in a pattern of a form (`--form`) that the capture does not know."""
    buses = {row.bus for row in capture.inventory() if row.bus}
    for where, some in groupby(asked.databases, lambda one: one.where):
        pairs = [(root, bus) for root in asked.roots for bus in buses or {""}]
        if not any(one.is_below(*pair) for one in some for pair in pairs):
            yield plain(f"--dbc {where}=: the capture has no such segment or pattern{_near(where, buses)}")
    found = (capture.names.get(token) for token in capture.names.tokens())
    known = {name for name in found if name} - {*RESERVED}
    for word in options.form if known else ():
        for name in texts(names_in(form_of(word)[0])):
            if name not in known and name not in RESERVED:
                yield plain(f"--form {word}: the capture has no name {name}{nearest(name, known)}")


def _near(where: str, buses: set[str]) -> str:
    words = {word for bus in buses for word in re.split(r"[ :]", bus)[1:] if word != "of"}
    return nearest(where, words) if closest(where, words) else nearest(where, buses)


def inside(
    where: str, source: "Source", asked: "Wanted", tell: Callable[[str], None]
) -> "tuple[DataFrame, Wanted]":
    """Find when a condition holds, and ask only for values of then. Of a signal that was heard at several
    places, the values of one count, which is told. Raises `PipelineError` if no signal has a name of it, or
    several have, or one that has texts stands where a number has to be."""
    from pipeline.analysis import signals
    from pipeline.cache import cached
    from pipeline.signals.conditions import parse
    from pipeline.signals.pieces import done
    from pipeline.signals.work import Long

    ends = condition(where).names
    rows = cached(done(source, asked._replace(ends=ends), Long()))
    places = _places(ends, signals.names_of(rows), lambda: _every_name(source, asked), tell)
    texts = {end: its.text or "" for end, (_, its) in places.items() if not its.are_numbers}
    with _no_texts(where, texts):
        held = signals.intervals(signals.heard_at(rows, dict(places.values())), parse(where, texts))
        spans = [(row.start_ns, row.end_ns) for row in held.limit(_SPANS_MOST + 1).collect()]
    if len(spans) > _SPANS_MOST:
        raise PipelineError(
            f"--where: it holds more than {_SPANS_MOST:,} times: ask for a part (--from, --to)"
        )
    return held, asked._replace(inside=tuple(spans))


def _places(
    ends: Iterable[str], names: "Mapping[str, Sequence[SignalPlace]]", every: Callable[[], set[str]],
    tell: Callable[[str], None],
) -> "dict[str, tuple[str, SignalPlace]]":  # fmt: skip
    """Find the signal that each end of a name stands for, and the place whose values count."""
    from pipeline.signals.ends import ends_with, like

    places = dict[str, "tuple[str, SignalPlace]"]()
    for end in ends:
        fits = [name for name in names if ends_with(name, end)]
        if len(fits) != 1:
            what = f"may be {' or '.join(fits[:5])}" if fits else f"is {_NONE}{like(end, every())}"
            raise PipelineError(plain(f"--where: {end} {what}"))
        its, *others = names[fits[0]]
        places[end] = fits[0], its
        if others:
            more = ", ".join(one.said() for one in others[:5])
            choose = "--gateway, or --dbc WHERE=FILE, chooses"
            tell(f"--where: {fits[0]} is that of {its.said()}; it is on {more} too ({choose})")
    return places


@contextmanager
def _no_texts(where: str, texts: Mapping[str, str]) -> Iterator[None]:
    """Turn what an engine says of a text where a number has to be into a `PipelineError` that names the
    signal. `texts` has one of each signal that has no numbers."""
    found = condition(where)
    wrong = [
        name for at, name in enumerate(found.names) if name in texts and re.search(rf"\bs{at}\b", found.sql)
    ]
    try:
        yield
    except Exception as error:
        is_engine = type(error).__module__.partition(".")[0] in _ENGINES
        if not (wrong and is_engine and _TYPES.search(str(error))):
            raise
        name, text = wrong[0], texts[wrong[0]][:_SHOWN]
        hint = f"it has texts, no numbers: compare it with one, such as {name} = '{text}'"
        raise PipelineError(plain(f"--where: {name}: {hint}")) from None


def _every_name(source: "Source", asked: "Wanted") -> set[str]:
    """Return the names of all signals of a capture."""
    from pipeline.analysis.signals import signals_in
    from pipeline.signals.pieces import done
    from pipeline.signals.work import Sums

    return signals_in(done(source, asked._replace(ends=(), inside=None), Sums(1000.0)))
