"""The record of a medium: its settings, and the facts that others ask for (docs/add-a-medium.md).

Records are pure and light: a link, and the library that drives it, are imported when a link is made.
A record names its link in a string, because the link's module imports the record.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from bus.schema import Node, check_fields

if TYPE_CHECKING:
    from bridges.media.shedding import Shed
    from bus.hub import Link


class Word(NamedTuple):
    """The way to name a medium on the command line: `NAME:TARGET?KEY=VALUE&...`, the keys being its fields.

    `target`: the field that TARGET fills; two of them are written HOST:PORT. `needed`: fields without which
    a word makes no sense, though a file may leave them out. `defaults`: values that differ from a file's.
    `part`: a field whose record's own fields are keys too; without that it cannot be given in a word.
    """

    name: str
    target: tuple[str, ...]
    example: str
    help: str
    needed: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = {}
    part: str = ""


class Taken(NamedTuple):
    """A thing that only one link can have: on its machine or, with `on_wire`, among all on its wire.

    `host` narrows a port to one of the machine's addresses.
    """

    what: str
    host: str = ""
    on_wire: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Medium(Node):
    """Settings and facts of one medium. Derive a frozen dataclass from it, with a field for each setting.

    Its constructor raises ValueError for wrong settings. `key` names the medium in files; `help` describes it
    in a few words. `LINK` names the class of its links, "module:Class". `deaf` means that a standby does not
    hear there what the active bridge sends, as on a line for two.
    """

    LINK: ClassVar[str]
    key: ClassVar[str]
    help: ClassVar[str]
    words: ClassVar[tuple[Word, ...]] = ()
    deaf: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_fields(self)
        self.check()

    def check(self) -> None:
        """Raise ValueError for settings that do not go together."""

    @property
    def device(self) -> str:
        """The device or the address that it opens, in one word."""
        raise NotImplementedError

    @property
    def queue_bytes(self) -> int | None:
        """Bound of the queue; None for a medium that has no setting for it."""
        return None

    def link(self, node: int | None = None, shed: "Shed | None" = None, **retry: Any) -> "Link":
        """Make the link, not yet open. `node` is the gateway's node id, `shed` the policy of its queue.

        `retry`: `retry_min_s` and `retry_max_s`. Raises `LinkError` for settings that can never work.
        """
        module, _, name = self.LINK.partition(":")
        made: Link = getattr(import_module(module), name)(self, shed=shed, **retry)
        return made

    def label(self) -> str:
        """Return the side in a few words, for `show`."""
        return f"{self.key} {self.device}"

    def wire(self, machine: str) -> str:
        """Return the name of the wire, equal for all sides on it. `machine` opens the link."""
        return f"{self.key} {self.device} of {machine}"

    @property
    def shared(self) -> bool:
        """Whether all that are on the wire hear each other."""
        return False

    def takes(self, node: int | None) -> Iterator[Taken]:
        """Yield the things that no other link can have at the same time. `node` is the gateway's node id."""
        yield from ()

    @property
    def needs_node(self) -> bool:
        """Whether its gateway must have a node id."""
        return False

    def seconds(self, size: int, trunk: bool) -> float | None:
        """Return the longest time, in seconds, of a frame of `size` bytes on the wire; None if unknown."""
        return None

    def unjudged(self) -> str:
        """Return why its capacity is unknown, if a setting is missing; else ""."""
        return ""

    @property
    def dials(self) -> str:
        """The address of a bus that it dials; "" if it does not."""
        return ""

    @property
    def listens(self) -> str:
        """The address of a bus that it listens on; "" if it does not."""
        return ""

    def unshed(self) -> str:
        """Return why no shed policy reaches its queue; "" if one does."""
        return ""
