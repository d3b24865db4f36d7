"""The description of the values under a pattern, for people and for metrics. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bus.quantity.forms import Form
    from bus.quantity.scale import Number


@dataclass(frozen=True, slots=True)
class Quantity:
    """A description of the values under a pattern.

    `pattern`: of the frames, as a file has it. `form`: of their data. `unit`: "" if they have none. `low` and
    `high`: the range in which they are, None where nobody knows. `choices`: the text of some values.
    `writable`: a command to the device is sent under this pattern. `any_at`: the place of a token in the
    pattern that may be any other; None if none may. `any_word`: what stands at that place, such as `SOURCE`.
    `is_text`: they are text, also where it looks like a number.
    """

    pattern: tuple[int | str, ...]
    form: "Form" = "text"
    unit: str = ""
    low: float | None = None
    high: float | None = None
    choices: "Mapping[Number, str]" = field(default_factory=dict)
    writable: bool = False
    any_at: int | None = None
    any_word: str = "ANY"
    is_text: bool = False
