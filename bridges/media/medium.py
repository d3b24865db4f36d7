"""The record of a medium: its settings, and the facts that other modules need (docs/add-a-medium.md).

Records are pure and fast to import: a link and its driver library are imported only when a link is made. A
record names the class of its link in a string, because the module of the link imports the record.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from bridges.items import Items
from bus import extras
from bus.confined import Confined
from bus.key_types import Names, Patterns
from bus.kinds import load
from bus.needs import Need
from bus.schema import Record, Where, check_fields

if TYPE_CHECKING:
    from bridges.media.shedding import Shed
    from bridges.media.subject import Subject
    from bridges.protocols.protocol import Protocol
    from bus.hub import Link
    from bus.transports.options import Tls


SEAL_BYTES = 18
"""The bytes that a seal adds to each message of a trunk with keys, on a wire that several share."""
CLOCK_S = 60.0
"""The most by which a sender's first seal there may differ from our own clock, in seconds."""


class Word(NamedTuple):
    """The syntax of a medium on the command line: `NAME:TARGET?KEY=VALUE&...`. The keys are its fields.

    `target`: the field that TARGET sets, or two fields for HOST:PORT. `needed`: fields that are required on
    the command line, though a file may omit them. `defaults`: default values that differ from those in a
    file. `part`: a field that holds a record, whose own fields become keys too; any other field with a record
    cannot be set on the command line. `unused`: fields without a meaning there: only bridges read them.
    `spares`: a field with which, if it is true, nothing is needed.
    """

    name: str
    target: tuple[str, ...]
    example: str
    help: str
    needed: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = {}
    part: str = ""
    unused: tuple[str, ...] = ()
    spares: str = ""


class Taken(NamedTuple):
    """A resource that only one link can use: on its machine or, with `on_wire`, on the whole wire.

    `host` limits a port to one of the machine's addresses.
    """

    what: str
    host: str = ""
    on_wire: bool = False


class Problem(NamedTuple):
    """A fault of a medium that `check` tells, or a warning; `where`: its place in the file."""

    text: str
    is_error: bool
    where: Where


class Passing(NamedTuple):
    """The patterns that a medium lets through by settings of its own, whose keys in files are `keys`.

    A frame that starts with one of `inward` may enter the bridge, one that starts with one of `outward` may
    leave it. An empty list lets nothing through.
    """

    inward: Patterns
    outward: Patterns
    keys: tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Medium(Record):
    """Settings and facts of one medium. Derive a frozen dataclass from it, with a field for each setting.

    The constructor raises ValueError for wrong settings. `key` names the medium in files. `help` describes it
    in a few words. `LINK` names the class of its links as "module:Class". `deaf` is True if a standby cannot
    hear what the active bridge sends, for example on a line between two devices. `asks` is True if a link
    asks each device for what it has, also without a protocol, so that one alone may. `opaque` is True if it
    carries messages that are no frames, as a bus does. `selective` is True if a link hears only what it asks
    for. `named` is True if a link writes tokens by name. `plain` is True if it carries no envelopes, so that
    it cannot be a trunk. `signs` is True if a link takes `keys`, with which it signs what it sends on a
    trunk, and verifies what it receives there, and `held_s`: on a ring of trunks, what may be older than
    that, as the process stood still, is not read. `seal_bytes` are what a signature adds to a message, and
    `clock_s` by how much clocks may differ then; 0 if they are not asked for. `items` are those that a
    protocol may read and write here; `SPEAKS` names the class of its links with a protocol, as `LINK` does.
    `tmq_items` are those on the wire of a side with TMQ, None if a tap cannot record them, for the reason
    `unrecorded`.
    """

    LINK: ClassVar[str]
    SPEAKS: ClassVar[str] = ""
    items: ClassVar[tuple[Items, ...]] = ()
    tmq_items: ClassVar[Items | None] = None
    unrecorded: ClassVar[str] = "it shows no wire"
    key: ClassVar[str]
    help: ClassVar[str]
    words: ClassVar[tuple[Word, ...]] = ()
    deaf: ClassVar[bool] = False
    asks: ClassVar[bool] = False
    opaque: ClassVar[bool] = False
    selective: ClassVar[bool] = False
    named: ClassVar[bool] = False
    plain: ClassVar[bool] = False
    signs: ClassVar[bool] = False
    seal_bytes: ClassVar[int] = 0
    clock_s: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        check_fields(self)
        self.check()

    def check(self) -> None:
        """Check that the settings fit together. Raises ValueError if not."""

    def unfit(self, spoken: bool) -> str:
        """Return why the settings do not go with a protocol (`spoken`), or without one; "" if they do."""
        return ""

    def unusual(self) -> str:
        """Return what of the settings is allowed and hardly meant, for a warning; "" if nothing is."""
        return ""

    def wire_items(self, spoken: bool) -> Items | None:
        """Return the items that a tap with `wire: true` records, with a protocol (`spoken`) or with TMQ."""
        return (self.items[0] if self.items else None) if spoken else self.tmq_items

    @property
    def device(self) -> str:
        """The device or address that the link opens, without spaces."""
        raise NotImplementedError

    @property
    def queue_bytes(self) -> int | None:
        """The limit of the queue, in bytes; None if the medium has no such setting."""
        return None

    @property
    def remote(self) -> bool:
        """Whether a server elsewhere has the device: it may hang up after it has accepted a connection."""
        return False

    def mute(self) -> "Medium":
        """Return the record for a link that only sends, and need not hear."""
        return self

    def link(self, node: int | None = None, shed: "Shed | None" = None, **retry: Any) -> "Link":
        """Make the link, not yet open. `node` is the gateway's node id, `shed` the policy of its queue.

        `retry` can have `retry_min_s` and `retry_max_s`, and if the medium signs `keys` and `held_s`. A
        selective medium is also told by `mates` whether other gateways run the bridge: a standby must hear
        what the active bridge sends. It is 0, or a number of the side, the same there but for the last 8
        bits. A named medium gets in `names` the names that the file knows, and one with `subjects_of_tmq`
        by `spoken_beside` whether a protocol reads the same wire. Raises `LinkError` for settings that can
        never work.
        """
        made: Link = load(self.LINK)(self, shed=shed, **retry)
        return made

    def speaking(self, protocol: "Protocol", shed: "Shed | None" = None, **more: Any) -> "Link":
        """Make the link, not yet open, whose devices speak `protocol`.

        `more` may have `retry_min_s`, `retry_max_s`, and `may_act(now_s)`, which tells whether this gateway
        may ask and write now; for a protocol that is `named` also `names`, and
        `subjects`, those of TMQ on the wire (`subjects_of_tmq`). Raises `LinkError` for settings
        that can never work, and for a missing library of the protocol.
        """
        extras.check(f"{self.key}:{self.device}", protocol.needs())
        made: Link = load(self.SPEAKS)(self, protocol, shed=shed, **more)
        return made

    def label(self) -> str:
        """Return a short description of this side of a bridge, for `show`."""
        return f"{self.key} {self.device}"

    def wire(self, machine: str) -> str:
        """Return the name of the wire, the same for all sides on it. `machine` opens the link."""
        return f"{self.key} {self.device} of {machine}"

    @property
    def confined(self) -> Confined | None:
        """The bounds of a wire on which all participants are one process or machine; None for others."""
        return None

    @property
    def shared(self) -> bool:
        """Whether all participants on the wire hear each other."""
        return False

    def takes(self, node: int | None) -> Iterator[Taken]:
        """Yield the resources that no other link can use meanwhile. `node` is the gateway's node id."""
        yield from ()

    def refuses(self, item: Any) -> str:
        """Return why an item of a protocol cannot be sent there, and what to do; "" if it can."""
        return ""

    @property
    def passing(self) -> Passing | None:
        """The patterns that the medium's own settings let through; None if it has no such settings."""
        return None

    @property
    def tmq_brokers(self) -> tuple[str, ...] | None:
        """The TMQ brokers that the link dials, by address or by their name in the file; None for all there.

        They are the values of a field `brokers`, which has addresses only when `link` is called.
        """
        return ()

    @property
    def replay_ms(self) -> float | None:
        """The age up to which a frame is sent there at a takeover; None where nothing is said."""
        return None

    @property
    def hears_only(self) -> bool:
        """Whether nothing is ever sent there."""
        return False

    @property
    def knows_own(self) -> bool:
        """Whether the driver marks frames that we have sent, where the wire brings them back."""
        return False

    @property
    def subjects_of_tmq(self) -> tuple[int, ...]:
        """The Cyphal subjects that TMQ has on the wire; none on most media."""
        return ()

    @property
    def pattern_subjects(self) -> "Mapping[Names, Subject]":
        """The Cyphal subjects of single patterns, which have no other frames."""
        return {}

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the settings though each is a legal one."""
        yield from ()

    def lines(self) -> Iterator[str]:
        """Yield what `show` says below the side, a line each."""
        yield from ()

    def remarks(self, names: Names) -> Iterator[str]:
        """Yield how a frame of a pattern is carried, in a few words, if not as all others."""
        yield from ()

    @property
    def needs_node(self) -> bool:
        """Whether the gateway of the medium must have a node id."""
        return False

    def needs(self) -> Iterator[Need]:
        """Yield what the link needs of the machine that opens it, such as a driver or a device file."""
        yield from ()

    @property
    def is_line(self) -> bool:
        """Whether the medium is a serial line, whose bytes take time."""
        return False

    def item_seconds(self, item: Any) -> float | None:
        """Return the longest time of an item of a protocol on the wire, in seconds; None if unknown."""
        return None

    def seconds(self, size: int, trunk: bool) -> float | None:
        """Return the longest time of a frame of `size` bytes on the wire, in seconds; None if unknown.

        With `trunk` the frame has an envelope.
        """
        return None

    def seconds_of(self, names: Names, size: int, trunk: bool) -> float | None:
        """Return what `seconds` does, for a frame of the pattern `names` on the wire."""
        return self.seconds(size, trunk)

    def own_share(self) -> float:
        """Return the share of the wire that a link takes by itself, when no frame crosses."""
        return 0.0

    def unjudged(self) -> str:
        """Return why the capacity is unknown, if a setting for it is missing; "" otherwise."""
        return ""

    @property
    def dials(self) -> str:
        """The address of the bus that the link dials; "" if it does not dial."""
        return ""

    @property
    def listens(self) -> str:
        """The address on which the link listens as a bus; "" if it does not listen."""
        return ""

    @property
    def listens_tls(self) -> "Tls | None":
        """The certificates with which it `listens`."""
        return None

    def lets_in(self) -> Iterator[str]:
        """Yield the hosts at which the link accepts connections that are none of a bus."""
        yield from ()

    def unshed(self) -> str:
        """Return why a shed policy has no effect on the link's queue; "" if it has."""
        return ""
