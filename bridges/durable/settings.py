"""The settings of a durable trunk in a topology."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from bus.key_types import Bytes, Name, Path, Patterns
from bus.schema import Key, Length, Range, Record, Single
from bus.transports.options import STREAMS
from bus.urls import split_url

JOURNAL: Final = " journal"
"""The end of the name of the account of what is kept."""
ENDS_MAX: Final = 63
"""The ends that may keep one journal: each has a bit in its records."""

ACKNOWLEDGES: Final = {
    "synced": "acknowledges after its fdatasync",
    "delivered": "acknowledges after delivery",
}
"""Words for when an end acknowledges, by its state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalClass(Record):
    """A class of messages in a journal, above those that follow it."""

    SHORT = "pattern"
    pattern: Annotated[Patterns, Length(1, 4096), "frames of these patterns"]
    age_ms: Annotated[
        int | None, Range(1, 86_400_000), "what waited longer is never sent: commands, for instance"
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Durable(Record):
    """The journal that a bus keeps for the other ends of a trunk."""

    SHORT = "directory"
    directory: Annotated[Path, "where the journal is; one for all durable trunks of a bus"]
    pattern: Annotated[Patterns, "keep only frames of these patterns; the rest is live only"] = ()
    bytes: Annotated[Bytes, "size of the journal; what has no room is counted"] = 1 << 30
    policy: Annotated[
        Literal["oldest", "lowest"],
        "what makes room: the oldest records; or before, `lowest`, what is of a low class is not taken",
    ] = "oldest"
    classes: Annotated[
        tuple[JournalClass, ...],
        Length(0, 64),
        Single(),
        "classes of frames, the highest first; what fits none is below them (docs/durable.md)",
    ] = ()
    age_h: Annotated[float, Range(0.01, 8760), "what is older is dropped, in hours"] = 72.0
    catch_up: Annotated[float, Range(0.01, 1), "share of the time that the backlog takes of the trunk"] = 0.5
    order: Annotated[
        Literal["lanes", "fifo"], "`fifo`: new messages wait for those that were kept; else they go first"
    ] = "lanes"
    sync_ms: Annotated[int, Range(1, 10_000), "messages of so long are synced together"] = 10
    plain: Annotated[
        bool,
        "a peer that says no hello for 1 s, as an older appliance, gets live traffic; else it gets nothing, "
        "and all is kept",
    ] = False
    ends: Annotated[
        tuple[Name, ...],
        Length(1, ENDS_MAX),
        Single(),
        "the gateways for which it keeps; others get live traffic. By default the one that it dials, or all "
        "that dial it in this file",
        Key("for"),
    ] = ()

    @property
    def journal(self) -> tuple[object, ...]:
        """The settings of the journal itself, which all durable trunks of a bus share."""
        room = self.bytes, self.policy, self.classes
        return self.directory, *room, self.age_h, self.catch_up, self.order, self.sync_ms


def check_durable(url: str, trunk: bool, durable: Durable | None) -> None:
    """Raise ValueError for a journal where no end could acknowledge anything."""
    if durable is None:
        return
    scheme = split_url(url).scheme
    if not trunk:
        raise ValueError(
            "durable has no effect here: only appliances acknowledge, so write trunk: true beside it"
        )
    if durable.policy == "lowest" and not durable.classes:
        raise ValueError("policy: lowest has no effect here: give durable its classes, the highest first")
    if scheme not in STREAMS:
        raise ValueError(f"durable has no effect here: on {scheme}:// nobody can be told from another")
