"""The record of the default: devices speak TMQ, in the frame format that their medium has for it."""

from dataclasses import dataclass
from typing import ClassVar

from bridges.items import Items
from bridges.protocols.protocol import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class TmqProtocol(Protocol):
    """TMQ frames, as each medium carries them: what a side speaks without `protocol`."""

    key: ClassVar = "tmq"
    help: ClassVar = "TMQ frames, the default"
    items: ClassVar[tuple[Items, ...]] = ()
