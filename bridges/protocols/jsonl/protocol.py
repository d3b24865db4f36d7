"""The record of the protocol of JSON lines."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from bridges.items import Items
from bridges.protocols.endings import without_end
from bridges.protocols.protocol import Protocol, Way
from bus.key_types import Names, PatternKey, pattern_in
from bus.schema import AnyText, Range

LINE_BYTES_MAX = 65_536
Member = Annotated[str, AnyText(), "a member, or a path such as `gps.lat`"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonLines(Protocol):
    """Lines of JSON: each line whole as a frame, or each of its members."""

    MAKE: ClassVar = "bridges.protocols.jsonl.translator:JsonTranslator"
    key: ClassVar = "jsonl"
    help: ClassVar = "lines of JSON"
    items: ClassVar[tuple[Items, ...]] = ("bytes", "datagrams")

    root: Annotated[Names, "pattern of a line that comes, or what the names of its members follow"] = (
        "json",
    )
    split: Annotated[
        bool, "each member of an object is a frame under `root/NAME`, instead of the whole line"
    ] = False
    members: Annotated[
        Mapping[Member, Names] | None, "only these members, each under its pattern (as their text)"
    ] = None
    send: Annotated[
        Names | Mapping[PatternKey, Member] | None,
        "pattern of the frames whose data leave as lines, whole; or patterns, each with the member that its "
        "frames set in an object; without it, none",
    ] = None
    longest_bytes: Annotated[int, Range(2, LINE_BYTES_MAX), "the longest line, without its end"] = 2048
    depth: Annotated[int, Range(1, 64), "most objects and lists within each other"] = 16

    def check(self) -> None:
        if self.members is not None and not self.members:
            raise ValueError("members: name one, or leave members out")
        if self.members and self.split:
            raise ValueError("members and split: members says which are frames, so leave split out")
        for member in (*(self.members or ()), *self.setters.values()):
            if not all(member.split(".")):
                raise ValueError(f'"{member[:64]}" is no member: write it like temp, or gps.lat within gps')

    @property
    def setters(self) -> Mapping[Names, str]:
        """The member that frames of each pattern set."""
        if isinstance(self.send, Mapping):
            return {pattern_in(text): member for text, member in self.send.items()}
        return {}

    @property
    def noun(self) -> str:
        return "a line of JSON"

    def guess(self, sample: bytes, guess: str) -> str:
        return without_end([b"\n"], sample, guess)

    @property
    def way(self) -> Way:
        inward = tuple(self.members.values()) if self.members else (self.root,)
        outward = (self.send,) if isinstance(self.send, tuple) else tuple(self.setters)
        return Way(tuple(dict.fromkeys(inward)), outward)
