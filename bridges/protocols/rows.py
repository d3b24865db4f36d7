"""The settings of one value that is asked for, or written into a device: what all tables have. Pure."""

from dataclasses import dataclass
from typing import Annotated

from bus.key_types import Delay, Names
from bus.quantity.forms import Form
from bus.quantity.quantity import Quantity
from bus.quantity.settings import OffsetSetting, ScaleSetting
from bus.schema import Key, Length, Record
from bus.wire.frame import TOKENS_MAX

UnitText = Annotated[str, Length(0, 32)]
FormSetting = Annotated[
    Form, "the data of frames: the shortest decimal, a double of 8 bytes, or JSON with `v`, `unit` and `t`"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(Record):
    """The base of records of one value in a device. `Valued` has those of bytes."""

    pattern: Annotated[Names, Length(1, 255), "of the frames with its values"]
    scale: ScaleSetting = 1
    offset: OffsetSetting = 0
    unit: Annotated[UnitText, "of the value, such as kWh"] = ""
    poll_ms: Annotated[Delay | None, "time between two readings; by default that of the protocol"] = None
    read: Annotated[bool, "ask for it; without, it is only written"] = True
    write: Annotated[bool, "frames under PATTERN/set are written into the device"] = False
    low: Annotated[float | None, Key("min"), "the least value that is written"] = None
    high: Annotated[float | None, Key("max"), "the greatest value that is written"] = None

    @property
    def value_type(self) -> str:
        """The type, also where the record has none."""
        raise NotImplementedError

    @property
    def is_text(self) -> bool:
        """Whether its values are text."""
        raise NotImplementedError

    @property
    def is_number(self) -> bool:
        """Whether any number within a range may be written."""
        raise NotImplementedError

    def check_asked(self) -> None:
        """Raise ValueError if what is said of reading and writing does not fit."""
        bounded = self.low is not None and self.high is not None
        if self.write and self.is_number and not bounded:
            raise ValueError("write: true needs min and max: the values that the device may be given")
        if not self.write and (self.low, self.high) != (None, None):
            raise ValueError("min and max are of values that are written: add write: true")
        if self.is_text and (self.low, self.high) != (None, None):
            raise ValueError(f"min and max are of numbers, and type {self.value_type} is text")
        if self.low is not None and self.high is not None and not self.low <= self.high:
            raise ValueError("min is above max")
        if self.write and len(self.pattern) >= TOKENS_MAX:
            raise ValueError(f"pattern: its commands need one name more, so at most {TOKENS_MAX - 1}")
        if not (self.read or self.write):
            raise ValueError("it is neither read nor written")

    def quantity(self, form: Form) -> Quantity:
        """Return the description of the value."""
        return Quantity(
            self.pattern, form, self.unit, self.low, self.high, writable=self.write, is_text=self.is_text
        )
