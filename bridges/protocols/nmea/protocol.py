"""The record of NMEA 0183."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from bridges.items import Items
from bridges.protocols.endings import without_end
from bridges.protocols.protocol import Protocol, Way
from bridges.protocols.rows import FormSetting
from bus.key_types import Names
from bus.quantity.quantity import Quantity
from bus.quantity.sentences import SENTENCES
from bus.schema import Length, Range
from bus.wire.frame import TOKENS_MAX

STANDARD_BYTES = 82
"""The longest sentence of the standard, with `$` and the line's end."""
_TALKERS = "GP GN GL GA GB GQ GI II IN HC HE SD WI YX AI AB P"
_TYPES = (
    "GGA GLL GSA GSV GST GNS GBS RMC RMB VTG VHW VLW ZDA HDT HDG HDM ROT DBT DPT MTW MWV MWD RSA TXT VDM VDO "
    "XDR APB XTE BOD BWC WPL RTE AAM TTM TLL DTM"
)
TYPES: Final = frozenset(_TYPES.split())
"""The types of sentences that are known by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nmea(Protocol):
    """Sentences of NMEA 0183, under `root/TALKER/TYPE`, such as `gps/GP/GGA`.

    A proprietary one, `$PUBX`, is under `root/P/UBX`. The data are the sentence, from `$` or `!` on. With
    `values` its fields are frames too, such as `gps/GP/GGA/lat`.
    """

    MAKE: ClassVar = "bridges.protocols.nmea.translator:NmeaTranslator"
    key: ClassVar = "nmea"
    help: ClassVar = "sentences of NMEA 0183"
    items: ClassVar[tuple[Items, ...]] = ("bytes", "datagrams")

    root: Annotated[Names, Length(0, TOKENS_MAX - 3), "what talker and type follow"] = ("nmea",)
    values: Annotated[bool, "the fields of sentences are frames, too: places, depths, speeds, with units"] = (
        False
    )
    form: FormSetting = "text"
    send: Annotated[
        Names | None,
        "pattern of the frames whose data leave as sentences; a checksum is added; without it, none",
    ] = None
    checksum: Annotated[
        Literal["required", "optional"],
        "whether sentences without a checksum are taken; a wrong one never is",
    ] = "required"
    longest_bytes: Annotated[
        int, Range(STANDARD_BYTES, 2048), "the longest sentence, with its end; the standard has 82"
    ] = 1024

    @property
    def noun(self) -> str:
        return "a sentence"

    def check(self) -> None:
        if self.form != "text" and not self.values:
            raise ValueError("form is of values: add values: true")

    def guess(self, sample: bytes, guess: str) -> str:
        return without_end([b"\n", b"\r"], sample, guess)

    @property
    def anew(self) -> bool:
        return self.form == "json"

    @property
    def way(self) -> Way:
        return Way((self.root,), () if self.send is None else (self.send,))

    def names(self) -> Iterator[str]:
        yield from (*_TALKERS.split(), *_TYPES.split())
        if self.values:
            yield from sorted({field.name for fields in SENTENCES.values() for field in fields})

    def quantities(self) -> Iterator[Quantity]:
        if self.values:
            for kind, fields in SENTENCES.items():
                for _, name, unit in fields:
                    pattern = (*self.root, _TALKERS.split()[0], kind, name)
                    yield Quantity(pattern, self.form, unit, any_at=len(self.root), any_word="TALKER")
