"""The steps of a roll-out as they cross SSH: one JSON document each way, of at most 4 MiB. Pure."""

import json
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal

_KINDS: Final = {"force": bool, "touched": bool, "lines": tuple}  # all other fields are text
Step = Literal["look", "apply", "health", "confirm", "back"]
STEPS: Final[tuple[Step, ...]] = ("look", "apply", "health", "confirm", "back")
TEXT_BYTES: Final = 4 << 20
HOLD_S: Final = 120.0
"""A gateway goes back by itself when nobody has asked for its health for so long."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A step for a gateway. `id` names the roll-out, `by` who makes it.

    `text` is the new file (`look`, `apply`), `old` the hash that the present one must have (`apply`).
    `force` goes over changes by hand. A `back` without `id` goes back from the last roll-out.
    """

    step: str
    gateway: str
    id: str = ""
    by: str = ""
    text: str = ""
    old: str = ""
    force: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a gateway. `error` says why it did not do the step; "" if it did.

    `touched` is whether its file may be the new one now. `hash` is that of its file, `word` its health
    (`absent`: no process runs the file), `lines` what a reload changes.
    """

    error: str = ""
    touched: bool = False
    hash: str = ""
    word: str = ""
    line: str = ""
    lines: tuple[str, ...] = ()


def pack(message: Asked | Answer) -> bytes:
    """Pack a step or an answer as one line."""
    return json.dumps(asdict(message)).encode() + b"\n"


def unpack_asked(data: bytes) -> Asked:
    """Unpack a step. Raises ValueError for anything else, such as one that was cut off."""
    asked: Asked = _unpacked(data, Asked)
    if asked.step not in STEPS:
        raise ValueError(f"no step {asked.step[:20]!r}")
    return asked


def unpack_answer(data: bytes) -> Answer:
    """Unpack an answer. Raises ValueError for anything else."""
    answer: Answer = _unpacked(data, Answer)
    return answer


def _unpacked(data: bytes, cls: type[Any]) -> Any:
    if len(data) > TEXT_BYTES or not data.endswith(b"\n"):
        raise ValueError("cut off, or too long")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError("no message of a roll-out")
    values = {one.name: found[one.name] for one in fields(cls) if one.name in found}
    if isinstance(values.get("lines"), list):
        values["lines"] = tuple(map(str, values["lines"]))
    if any(type(value) is not _KINDS.get(name, str) for name, value in values.items()):
        raise ValueError("no message of a roll-out")
    try:
        return cls(**values)
    except TypeError:
        raise ValueError("no message of a roll-out") from None
