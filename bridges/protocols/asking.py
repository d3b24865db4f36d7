"""The settings of protocols that ask their devices for values, and write values into them. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from bridges.protocols.protocol import Problem, Protocol, Way, tokens_of
from bridges.protocols.values import FormSetting, Valued
from bus.key_types import Delay, Names
from bus.quantity.quantity import Quantity
from bus.quantity.raw import TEXT, Layout, Order, check_shared_order
from bus.quantity.settings import is_number
from bus.schema import Key, Range
from bus.values import COMMAND, RESULT
from bus.wire.frame import TOKENS_MAX

SET = COMMAND
"""The last name of the pattern of a command; before it, as before `RESULT`, stands that of the value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(Valued):
    """The base of records of one value that is asked for, or written."""

    poll_ms: Annotated[Delay | None, "time between two readings; by default that of the protocol"] = None
    read: Annotated[bool, "ask for it; without, it is only written"] = True
    write: Annotated[bool, "frames under PATTERN/set are written into the device"] = False
    low: Annotated[float | None, Key("min"), "the least value that is written"] = None
    high: Annotated[float | None, Key("max"), "the greatest value that is written"] = None

    def check_asked(self) -> None:
        """Raise ValueError if what is said of reading and writing does not fit."""
        numeric = is_number(self.value_type) and not self.choices
        bounded = self.low is not None and self.high is not None
        if self.write and numeric and not bounded:
            raise ValueError("write: true needs min and max: the values that the device may be given")
        if not self.write and (self.low, self.high) != (None, None):
            raise ValueError("min and max are of values that are written: add write: true")
        if self.low is not None and self.high is not None and not self.low <= self.high:
            raise ValueError("min is above max")
        if self.write and (self.bit, self.bits) != (None, None):
            some = "some bits" if self.bit is None else "one bit"
            raise ValueError(f"{some} of a register cannot be written: others could change meanwhile")
        if self.write and len(self.pattern) >= TOKENS_MAX:
            raise ValueError(f"pattern: its commands need one name more, so at most {TOKENS_MAX - 1}")
        if not (self.read or self.write):
            raise ValueError("it is neither read nor written")

    def check_shared_order(self, order: Order, size_bytes: int) -> None:
        """Raise ValueError if the value has no order of its own, and that of its protocol is none for it."""
        if self.order is None:
            try:
                check_shared_order(Layout(self.value_type, size_bytes, order))
            except ValueError as error:
                raise ValueError(f"{'/'.join(map(str, self.pattern))}: {error}") from None

    def quantity(self, form: "FormSetting") -> Quantity:
        """Return the description of the value."""
        return replace(Valued.quantity(self, form), low=self.low, high=self.high, writable=self.write)


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
            if self.form == "number" and row.value_type in TEXT:
                raise ValueError(f"form: number has no text, and {row.value_type} is text")

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
