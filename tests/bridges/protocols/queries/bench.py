"""A device that answers text when it is asked, on the bench of masters in virtual time."""

from collections.abc import Mapping
from typing import Any

from bridges.protocols.queries.protocol import Queries, Query
from tests.bridges.protocols.modbus.bench import Bench, Said

NAMES = "a b c d volt amp rpm name mode set result"


class TextDevice:
    """A good device: `answers` has what it says to each text, and it obeys `VOLT 5`. `asked` are its texts.

    Override `say` to make it misbehave. It answers after `delay_s`, and always in order: `busy_s`.
    """

    tcp = True

    def __init__(
        self, answers: Mapping[str, str] | None = None, end: str = "\n", delay_s: float = 0.01
    ) -> None:
        self.answers = {"A?": "1", "B?": "2", "C?": "3", "VOLT?": "12.50", "OUTP?": "0", **(answers or {})}
        self.end, self.delay_s = end, delay_s
        self.asked: list[str] = []

    def hear(self, data: bytes) -> Said:
        text = data.decode("latin-1").rstrip("\r\n")
        self.asked.append(text)
        key, _, value = text.partition(" ")
        if value:
            self.answers[f"{key}?"] = value
        return self.say(text, self.answers.get(text))

    def say(self, asked: str, answer: str | None) -> Said:
        return [] if answer is None else [(self.delay_s, self.ended(answer))]

    def ended(self, answer: str) -> bytes:
        return (answer + self.end).encode("latin-1")


class SerialDevice(TextDevice):
    """The same on a line on which bytes take time."""

    tcp = False


def row(ask: str | None, pattern: str, **more: Any) -> Query:
    return Query(ask=ask, pattern=tuple(pattern.split("/")), read=ask is not None, **more)


ABC = (row("A?", "a"), row("B?", "b"), row("C?", "c"))


def table(*rows: Query, **more: Any) -> Queries:
    return Queries(queries=rows or ABC, **{"timeout_ms": 1000, **more})


def bench(record: Queries, device: TextDevice) -> Bench:
    return Bench(record, device, names=NAMES)  # type: ignore[arg-type]
