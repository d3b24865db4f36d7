"""The record of P1 of smart meters."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from bridges.items import Items
from bridges.protocols.endings import without_end
from bridges.protocols.p1.codes import (
    CHANNELS,
    CODE,
    CURRENT,
    OTHER_UNITS,
    TEXTS,
    TIME,
    TIMED,
    UNITS,
    usual_channel,
)
from bridges.protocols.p1.telegram import UNCHECKED
from bridges.protocols.protocol import Protocol, Way
from bridges.protocols.rows import FormSetting
from bus.key_types import Names
from bus.quantity.quantity import Quantity
from bus.schema import Check, Length, Range, Single
from bus.wire.frame import TOKENS_MAX
from bus.wire.notation import text_of

_TEXT: Final = "text"
ENCRYPTED: Final = b"\xdb\x08"
_CODE: Final = re.compile(CODE, re.ASCII)


def code_in(text: str) -> tuple[str, str]:
    """Return channel and code in a text such as `1-0:1.8.1`; the channel is "" if there is none. Raises
    ValueError."""
    found = _CODE.fullmatch(text.replace("/", ":", 1))
    if found is None:
        raise ValueError(f'"{text[:40]}" is no OBIS code: write it like 1-0:1.8.1, or 1.8.1 of any channel')
    return found[1] or "", found[2].removesuffix(CURRENT)


def _check_code(text: str) -> None:
    code_in(text)


Code = Annotated[str, Check(_check_code, "an OBIS code")]


@dataclass(frozen=True, slots=True, kw_only=True)
class P1(Protocol):
    """A smart meter at its P1 port, or another that sends its lines by itself: values as `ROOT/CHANNEL/CODE`.

    The line `1-0:1.8.1(000123.456*kWh)` is `ROOT/1-0/1.8.1`. It is only listened to.
    """

    MAKE: ClassVar = "bridges.protocols.p1.translator:P1Translator"
    key: ClassVar = "p1"
    help: ClassVar = "telegrams of smart meters (DSMR P1, IEC 62056-21 mode D)"
    items: ClassVar[tuple[Items, ...]] = ("bytes",)

    root: Annotated[Names, Length(0, TOKENS_MAX - 3), "what channel and code follow"] = ("p1",)
    receive: Annotated[
        Annotated[tuple[Code, ...], Length(1, 512), Single()] | None,
        "only these codes, such as `1-0:1.7.0`, or `24.2.1` of any channel; without it, all",
    ] = None
    form: FormSetting = "text"
    checksum: Annotated[
        Literal["required", "optional"],
        "whether telegrams without a CRC are taken, of meters that never write one, as before DSMR 4; those "
        "with a wrong one never are",
    ] = "required"
    longest_bytes: Annotated[int, Range(256, 65_536), "the longest telegram"] = 8192

    @property
    def noun(self) -> str:
        return "a telegram of a meter"

    def guess(self, sample: bytes, guess: str) -> str:
        if ENCRYPTED in sample:
            return "encrypted telegrams, as in Luxembourg and Austria, which are not read"
        if UNCHECKED.search(sample) and self.checksum == "required":
            return "telegrams without a CRC: `checksum: optional`"
        return without_end([b"\n"], sample, guess)

    @property
    def anew(self) -> bool:
        return self.form == "json"

    @property
    def wanted(self) -> frozenset[tuple[str, str]] | None:
        """The channels and codes that are asked for; None for all."""
        return None if self.receive is None else frozenset(map(code_in, self.receive))

    @property
    def way(self) -> Way:
        wanted = self.wanted
        if wanted is None or not all(channel for channel, _ in wanted):
            return Way((self.root,))
        return Way(tuple((*self.root, *one) for one in sorted(wanted)))

    def names(self) -> Iterator[str]:
        units = (unit for some in OTHER_UNITS.values() for unit in some)
        asked = (code for _, code in self.wanted or ())
        yield from filter(
            None, (*CHANNELS, *UNITS, *TEXTS, TIME, *dict.fromkeys(UNITS.values()), *units, *asked)
        )

    def quantities(self) -> Iterator[Quantity]:
        for code, *more, unit in self._described():
            is_text = unit == _TEXT
            facts = self.form, "" if is_text else unit
            place = len(self.root)
            pattern = (*self.root, usual_channel(code), code, *more)
            yield Quantity(pattern, *facts, any_at=place, any_word="CHANNEL", is_text=is_text)
            if self.checksum == "optional":  # old meters may leave out the channel
                yield Quantity((*self.root, code, *more), *facts, is_text=is_text)

    def _described(self) -> Iterator[tuple[str, ...]]:
        """Yield the codes that may come, each with the names behind it and with its unit, or `_TEXT`."""
        numbers = ((code, unit) for code, unit in UNITS.items())
        others = ((code, other, other) for code, unit in UNITS.items() for other in OTHER_UNITS.get(unit, ()))
        texts = (*((code, _TEXT) for code in TEXTS), *((code, TIME, _TEXT) for code in TIMED))
        codes = {code for _, code in self.wanted or ()}
        every = (*numbers, *others, *(texts if self.form != "number" else ()))
        yield from (one for one in every if not codes or one[0] in codes)

    def label(self) -> str:
        return f"p1 {text_of(self.root)}"
