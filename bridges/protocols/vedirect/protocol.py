"""The record of VE.Direct."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from bridges.items import Items
from bridges.protocols.endings import without_end
from bridges.protocols.protocol import Problem, Protocol, Way
from bridges.protocols.rows import FormSetting
from bridges.protocols.vedirect.labels import LABEL, TEXTS, UNITS
from bus.key_types import Names
from bus.quantity.quantity import Quantity
from bus.schema import Length, Range, Single
from bus.wire.frame import TOKENS_MAX
from bus.wire.notation import text_of

Label = Annotated[str, Length(1, 32)]


@dataclass(frozen=True, slots=True, kw_only=True)
class VeDirect(Protocol):
    """A Victron solar charger, battery monitor or inverter with VE.Direct: values as `ROOT/LABEL`.

    It is only listened to: nothing is sent, and HEX frames are passed over.
    """

    MAKE: ClassVar = "bridges.protocols.vedirect.translator:VeDirectTranslator"
    key: ClassVar = "vedirect"
    help: ClassVar = "VE.Direct of Victron, the text protocol"
    items: ClassVar[tuple[Items, ...]] = ("bytes",)

    root: Annotated[Names, Length(0, TOKENS_MAX - 1), "what the label of a field follows"] = ("vedirect",)
    receive: Annotated[
        Annotated[tuple[Label, ...], Length(1, 256), Single()] | None,
        "only these labels, such as `V` and `SOC`; without it, all",
    ] = None
    form: FormSetting = "text"
    longest_bytes: Annotated[int, Range(64, 65_536), "the longest block"] = 2048

    def check(self) -> None:
        for label in self.receive or ():
            if re.fullmatch(LABEL, label) is None:
                raise ValueError(f"receive: {label!r} is no label: write it as the device does, like SOC")

    @property
    def noun(self) -> str:
        return "a block of VE.Direct"

    def guess(self, sample: bytes, guess: str) -> str:
        return without_end([b"\n"], sample, guess)

    @property
    def anew(self) -> bool:
        return self.form == "json"

    @property
    def way(self) -> Way:
        wanted = ((*self.root, label) for label in self.receive or ())
        return Way((self.root,) if self.receive is None else tuple(wanted))

    def problems(self) -> Iterator[Problem]:
        known = {label.upper(): label for label in self.names()}
        for label in self.receive or ():
            if (meant := known.get(label.upper(), label)) != label:
                yield Problem(
                    f'receive: no device is known that sends "{label}"; did you mean "{meant}"?', False
                )

    def names(self) -> Iterator[str]:
        yield from (*UNITS, *TEXTS)

    def quantities(self) -> Iterator[Quantity]:
        for label in (*UNITS, *sorted(TEXTS)):
            is_text = label in TEXTS
            if (self.receive is None or label in self.receive) and not (is_text and self.form == "number"):
                unit = UNITS.get(label, "")
                yield Quantity((*self.root, label), self.form, unit, is_text=is_text)

    def label(self) -> str:
        return f"vedirect {text_of(self.root)}"
