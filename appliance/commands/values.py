"""`buscoupler values ENDPOINT`: ask the caches of a bus for the newest frame of each pattern."""

import argparse
import json
import secrets
import sys
from collections.abc import Iterator
from typing import Any

from appliance.commandline.arguments import above_zero, argument
from appliance.commandline.names import names_argument, running, units
from appliance.probe.endpoint import endpoint_arguments, link_of
from appliance.probe.station import Station
from appliance.probe.words import shown, text_of
from appliance.process.running import run_loop
from bus.asking import Answer, EndOfAnswer, Question, ask, read
from bus.names import Names
from bus.wire.envelope import take_apart
from bus.wire.notation import pattern_of
from bus.wire.pattern import Pattern

TIMEOUT_S = 3.0
_NO_CACHE = (
    "no cache on this bus answered within {:g} s: add a `cache` device for it; what an address with "
    "last_values gives, `recv` shows"
)


def arguments(parser: argparse.ArgumentParser) -> None:
    endpoint_arguments(parser, count="print only the N newest")
    parser.add_argument(
        "--pattern", type=argument(pattern_of), default=Pattern(), metavar="PATTERN",
        help="ask only for values that start with it, like fridge/temp",
    )  # fmt: skip
    parser.add_argument(
        "--timeout", type=above_zero, default=TIMEOUT_S, metavar="S",
        help=f"wait S seconds for an answer ({TIMEOUT_S:g}); exit with 1 without one",
    )  # fmt: skip
    names_argument(parser, "show tokens by these names, beside those that running gateways know")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")


def run(options: argparse.Namespace) -> int:
    return run_loop(values(options))


class Answers:
    """The answers to one question so far.

    `end` is the last message of the first cache to finish, else None.
    """

    def __init__(self, nonce: int) -> None:
        self.end: EndOfAnswer | None = None
        self.count = 0
        self.newest: dict[Pattern, Answer] = {}
        self._nonce = nonce

    def take(self, message: bytes) -> None:
        said = read(take_apart(message)[1])
        if isinstance(said, Answer) and said.nonce == self._nonce:
            self.count += 1
            known = self.newest.get(said.pattern)
            if known is None or said.age_ms < known.age_ms:
                self.newest[said.pattern] = said
        elif isinstance(said, EndOfAnswer) and said.nonce == self._nonce and self.end is None:
            self.end = said

    def sorted(self) -> list[Answer]:
        """Return the newest value of each pattern, in the order of their age, the oldest first."""
        return sorted(self.newest.values(), key=lambda answer: -answer.age_ms)

    def missing(self) -> Iterator[str]:
        """Yield a line about values that the cache had and that are not among the answers."""
        assert self.end is not None
        lost = max(0, self.end.said - self.count)
        if lost:
            yield f"{lost} values were lost on the way: a queue was full"
        if self.end.left_out:
            yield f"{self.end.left_out} values were left out: their patterns are too long for an answer"


async def values(options: argparse.Namespace) -> int:
    """Print the values of the first cache that answers.

    Return 0; or 1 if none does, or values are missing.
    """
    question = Question(secrets.randbits(32), options.pattern)
    answers = Answers(question.nonce)
    async with Station(link_of(options), announce=options.listen) as station:
        if not await station.peer(options.timeout):
            return station.complain("values", f"no bus answered within {options.timeout:g} s")
        station.say([ask(question)])
        if not await station.until(lambda: _take(station, answers), options.timeout):
            return station.complain("values", _NO_CACHE.format(options.timeout))
    _print(answers.sorted()[-(options.count or 0) :], options)
    missing = list(answers.missing())
    for text in missing:
        print(f"buscoupler values: {text}", file=sys.stderr)
    return 1 if missing else 0


def _take(station: Station, answers: Answers) -> bool:
    heard = station.leaf.heard
    while heard:
        answers.take(heard.popleft())
    return answers.end is not None


def _print(answers: list[Answer], options: argparse.Namespace) -> None:
    names, known = Names([*options.names, *running()]), units()
    for answer in answers:
        pattern = names.show(answer.pattern)
        unit = known.get(pattern, "")
        if options.json:
            print(json.dumps(_record(answer, pattern) | ({"unit": unit} if unit else {})))
        else:
            print(
                f"{answer.age_ms / 1000:.3f} s ago  {pattern} {shown(answer.data)}{' ' if unit else ''}{unit}"
            )


def _record(answer: Answer, pattern: str) -> dict[str, Any]:
    return {
        "age_ms": answer.age_ms,
        "tokens": list(answer.pattern),
        "pattern": pattern,
        "text": text_of(answer.data),
        "hex": answer.data.hex(),
    }
