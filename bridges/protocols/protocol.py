"""The base class of the records of protocols: settings, and the facts that other modules need. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from bridges.items import Items
from bridges.judge import Judge
from bus.key_types import Delay, Names, Patterns
from bus.kinds import load
from bus.needs import Need
from bus.quantity.quantity import Quantity
from bus.schema import Record, Where, check_fields
from bus.wire.frame import DATA_BYTES_MAX
from bus.wire.pattern import Pattern

if TYPE_CHECKING:
    from bridges.protocols.selection import Selection
    from bridges.protocols.translator import Translator, Wire


class Problem(NamedTuple):
    """A fault of a protocol that `check` tells, or a warning; `where`: its place, if not the whole record.

    `is_note`: no warning, but a remark that needs nobody's action.
    """

    text: str
    is_error: bool = True
    where: Where | None = None
    is_note: bool = False

    def __str__(self) -> str:
        place = self.where
        return f"{place.file}:{place.line}: {self.text}" if place is not None and place.line else self.text


class Way(NamedTuple):
    """The patterns by which frames enter the bridge (`inward`) and leave it (`outward`) on a side.

    None: any pattern. An empty list: nothing. The patterns are those of the protocol itself, before `prefix`
    and `rename` of the side.
    """

    inward: Patterns | None = None
    outward: Patterns | None = ()


class Cycle(NamedTuple):
    """An item that devices repeat on the wire: its name, and the time from one to the next."""

    name: str
    period_s: float
    item: Any


class Claim(NamedTuple):
    """The patterns that a side receives and sends on a wire without sources. `spares`: what it sends does not
    come in."""

    received: "Selection"
    sent: "Selection"
    spares: bool = False

    def overlap(self) -> str:
        """Return an identifier that comes in and leaves; "" if there is none."""
        return "" if self.spares else self.received.overlap(self.sent)

    def hears(self, other: "Claim") -> str:
        """Return an identifier that comes in here and that the other side sends; "" if there is none."""
        return "" if self.spares and self.sent == other.sent else self.received.overlap(other.sent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol(Record):
    """Settings and facts of one protocol. Derive a frozen dataclass from it, with a field for each setting.

    The constructor raises ValueError for wrong settings. `key` names the protocol in files, and `help`
    describes it in a few words. `items` are those that it reads. `MAKE` names, as "module:Class", what is
    called with the record and a `Wire` and returns a `Translator`; it is imported when a link opens.

    `asks`: its devices say nothing unless they are asked, so one gateway alone may have the wire. `deaf`: a
    standby cannot know, from what it hears, what the active bridge has sent. `sourceless`: frames on the wire
    do not say who sent them, so one id has one sender. `named`: it writes tokens by name. `holds`: it holds
    messages until the device has told what became of them, so its link has one device.
    """

    MAKE: ClassVar[str] = ""
    key: ClassVar[str]
    help: ClassVar[str]
    items: ClassVar[tuple[Items, ...]]
    asks: ClassVar[bool] = False
    deaf: ClassVar[bool] = True
    sourceless: ClassVar[bool] = False
    named: ClassVar[bool] = False
    holds: ClassVar[bool] = False

    age_ms: Annotated[Delay, "at a takeover, frames that waited longer are not sent any more"] = 100
    replay: Annotated[bool, "at a takeover, send what the failed gateway had not sent"] = True
    on_doubt: Annotated[
        Literal["stop", "go on"],
        "sending, where several gateways stand in for each other and no broker is reachable",
    ] = "stop"

    def __post_init__(self) -> None:
        check_fields(self)
        self.check()

    def check(self) -> None:
        """Check that the settings fit together. Raises ValueError if not."""

    def unfit(self, is_line: bool) -> str:
        """Return why the settings do not go with a medium; "" if they do. `is_line`: it is a serial line."""
        return ""

    def translator(self, wire: "Wire") -> "Translator[Any]":
        """Make the translator of one opened wire. It may read files, and so block, and raise OSError or
        ValueError for what is wrong in them, and ValueError for a defect: the link calls it in a thread."""
        try:
            made: Translator[Any] = load(self.MAKE)(self, wire)
        except (OSError, ValueError, ImportError):
            raise
        except Exception as error:  # what others wrote may raise anything
            from bus.defects import defect  # late: a record is read far more often

            raise ValueError(defect("the protocol", error, self.MAKE.partition(":")[0])) from error
        return made

    @property
    def noun(self) -> str:
        """The name of the unit that a device says, such as "a line", in the words of noise that has none."""
        return "a frame"

    def guess(self, sample: bytes, guess: str) -> str:
        """Return what may be wrong with input of which nothing is understood, by its last bytes."""
        return guess

    @property
    def way(self) -> Way:
        """The patterns that enter and leave."""
        return Way()

    @property
    def same(self) -> str:
        """The settings that two sides on one wire must have in common, so that each receives a frame as the
        other sent it; "" where frames come back with other patterns or data."""
        return ""

    @property
    def anew(self) -> bool:
        """Whether gateways that hear the same make different frames of it, by number, time or sampling. A
        standby then cannot tell what the active one has sent, and at a takeover sends nothing from before."""
        return False

    @property
    def judge(self) -> Judge | None:
        """A judge of what enters and leaves, where the patterns of `way` have more in them; else None."""
        return None

    @property
    def claim(self) -> Claim | None:
        """The identifiers that come in and leave, for a `sourceless` protocol of CAN."""
        return None

    @property
    def stops_in_doubt(self) -> bool:
        """Whether nothing is sent while no broker can say which gateway may."""
        return self.on_doubt == "stop"

    @property
    def hears_errors(self) -> bool:
        """Whether the translator is to have the error frames of a CAN bus, too."""
        return False

    def filters(self) -> tuple[tuple[int, int], ...] | None:
        """Return identifiers of CAN frames, each with a mask, one of which all frames match that it reads, or
        that it sends where a standby hears them; None for all frames."""
        return None

    def needs(self) -> Iterator[Need]:
        """Yield what the protocol needs of the machine, such as a library or a file."""
        yield from ()

    def files(self) -> Iterator[str]:
        """Yield the paths of the files that the protocol reads; a change of one is a change of the side."""
        yield from ()

    def path(self, name: str) -> str:
        """Return the path of a file that the record names, which is relative to the file of the record."""
        return str(Path(self.where.file).parent / name)

    def names(self) -> Iterator[str]:
        """Yield the names of tokens that the protocol makes beside those in its settings. May read files."""
        yield from ()

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong in the protocol's files, or worth a warning, for `check`. May read them."""
        yield from ()

    def quantities(self) -> Iterator[Quantity]:
        """Yield what is known of the values under patterns, for `show`, the page and metrics. May read
        files."""
        yield from ()

    def cycles(self) -> Iterator[Cycle]:
        """Yield what is repeated on the wire, which `check` compares with its capacity. May read files."""
        yield from ()

    def leaving(self) -> Iterator[tuple[str, Any]]:
        """Yield items that are sent, each with its name, which `check` holds against the medium. May read
        files."""
        yield from ()

    @property
    def data_bytes_max(self) -> int:
        """The most data that a frame may have which leaves; those of longer ones are dropped."""
        return DATA_BYTES_MAX

    def exchange(self, data_bytes: int) -> Any:
        """Return the item, of those whose time the medium knows, as which a frame with so much data counts
        in its capacity; None for that of a frame without a protocol."""
        return None

    def label(self) -> str:
        """Return a short description, for `show`."""
        return self.key

    def patterns(self) -> Iterator[Names]:
        """Yield all patterns in the settings, whose names `recv` and others then know."""
        way = self.way
        yield from (*(way.inward or ()), *(way.outward or ()))


def tokens_of(names: Names) -> tuple[int, ...]:
    """Return the tokens of a pattern."""
    return tuple(Pattern(*names))
