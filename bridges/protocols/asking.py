"""The settings of protocols that ask their devices for values, and write values into them. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from bridges.protocols.protocol import Problem, Protocol, Way, tokens_of
from bridges.protocols.rows import Asked, FormSetting
from bus.key_types import Delay, Names
from bus.quantity.quantity import Quantity
from bus.schema import Range
from bus.values import COMMAND, RESULT

SET = COMMAND
"""The last name of the pattern of a command; before it, as before `RESULT`, stands that of the value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking(Protocol):
    """The base of protocols whose devices are asked. A protocol has `rows`, and `form` of their values."""

    asks: ClassVar = True

    poll_ms: Annotated[Delay, "time between two readings of a value"] = 1000
    form: FormSetting = "text"
    age_ms: Annotated[Delay, "a command that waited longer is not written any more"] = 1000
    replay: Annotated[bool, "never: a command is written once"] = False
    commands: Annotated[int, Range(1, 1024), "most commands that wait"] = 64

    @property
    def rows(self) -> Sequence[Asked]:
        """The values."""
        raise NotImplementedError

    def check(self) -> None:
        if self.replay:
            raise ValueError("replay: a command to a device is never sent again")
        for row in self.rows:
            if self.form == "number" and row.is_text:
                shown = "/".join(map(str, row.pattern))
                raise ValueError(f"form: number has no text, and {shown} is of type {row.value_type}")

    @property
    def way(self) -> Way:
        inward = dict.fromkeys(row.pattern for row in self.rows)
        return Way((*inward,), tuple((*row.pattern, SET) for row in self.rows if row.write))

    def names(self) -> Iterator[str]:
        yield from (SET, RESULT)

    def quantities(self) -> Iterator[Quantity]:
        yield from (row.quantity(self.form) for row in self.rows)

    def problems(self) -> Iterator[Problem]:
        yield from _repeated(self.rows)


def _repeated(rows: Sequence[Asked]) -> Iterator[Problem]:
    """Yield a problem for each row under whose pattern other frames come too."""
    taken: dict[tuple[int, ...], Names] = {}
    for row in rows:
        for pattern in ((row.pattern), *(((*row.pattern, SET), (*row.pattern, RESULT)) if row.write else ())):
            tokens = tokens_of(pattern)
            if tokens in taken:
                shown = "/".join(map(str, pattern))
                yield Problem(
                    f"the pattern {shown} is that of another value: give each its own", where=row.where
                )
            taken[tokens] = pattern


def counted(number: int, what: str) -> str:
    """Return a number of things, for people."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
