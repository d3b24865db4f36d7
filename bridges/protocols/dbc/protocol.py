"""The record of the protocol of CAN messages that a database describes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from bridges.items import CanFrame, Items
from bridges.protocols.dbc.checks import problems
from bridges.protocols.dbc.database import Unreadable, read
from bridges.protocols.dbc.fills import chosen_for
from bridges.protocols.dbc.index import filters_of, selection_of
from bridges.protocols.dbc.layout import Database, Message
from bridges.protocols.dbc.values import named
from bridges.protocols.dbc.wanted import Wanted
from bridges.protocols.protocol import Claim, Cycle, Problem, Protocol, Way
from bridges.protocols.rows import FormSetting
from bus.errors import words_of
from bus.key_types import Delay, Names, Path, Scalar, check_signs
from bus.needs import Library, Need, Readable
from bus.quantity.quantity import Quantity
from bus.schema import Check, Key, Length, Range, Single, Where
from bus.text import plain
from bus.wire.frame import TOKENS_MAX

MISSING = "cantools is missing: pip install 'buscoupler[dbc]'"

MessageName = Annotated[str, Length(1, 255)]
SignalKey = Annotated[str, Length(1, 511), Check(check_signs, "a signal")]
MessageNames = Annotated[tuple[MessageName, ...], Length(0, 4096), Single()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dbc(Protocol):
    """CAN messages, with signals as a database (DBC, KCD or SYM) describes them."""

    SHORT: ClassVar = "file"
    MAKE: ClassVar = "bridges.protocols.dbc.translator:DbcTranslator"
    key: ClassVar = "dbc"
    help: ClassVar = "CAN messages of a database"
    items: ClassVar[tuple[Items, ...]] = ("frames",)
    sourceless: ClassVar = True

    file: Annotated[Path, "the database; its name ends with .dbc, .kcd or .sym"]
    root: Annotated[Names, "a signal is published as ROOT/MESSAGE/SIGNAL"] = ("can",)
    receive: Annotated[
        MessageNames | None, "only these messages come in; without it, all that we do not send"
    ] = None
    send: Annotated[MessageNames, "messages that the gateway sends; without it and `as`, none"] = ()
    sender: Annotated[MessageName | None, "send what this node sends in the database", Key("as")] = None
    per: Annotated[Literal["signal", "message"], "a frame for each signal, or one JSON object for all"] = (
        "signal"
    )
    form: FormSetting = "text"
    publish: Annotated[
        Literal["frame", "change"],
        "what comes, or only what differs from the last; a multiplexer then comes with `refresh_ms` only",
    ] = "frame"
    refresh_ms: Annotated[
        Delay, "with `publish: change`, what stays is published this often, if it comes"
    ] = 10_000
    every_ms: Annotated[Delay | None, "a signal is published at most this often, with its latest value"] = (
        None
    )
    initial: Annotated[
        Mapping[SignalKey, Scalar],
        "values until the bus gives some, by SIGNAL or MESSAGE/SIGNAL: commands on a live bus",
    ] = field(default_factory=dict)
    fill: Annotated[
        Mapping[SignalKey, str],
        "who fills a sent signal, by SIGNAL or MESSAGE/SIGNAL: `counter`, or an entry point",
    ] = field(default_factory=dict)
    cycle: Annotated[
        bool, "send at the cycle time of the database, while each value that came is younger than `age_ms`"
    ] = False
    j1939: Annotated[
        bool | None,
        "extended messages are J1939; by default if the database says so, or the source of all is 254",
    ] = None
    address: Annotated[Annotated[int, Range(0, 253)] | None, "J1939: our address, to send with"] = None
    name: Annotated[
        Annotated[int, Range(0, (1 << 64) - 1)] | None,
        "J1939: our NAME, 64 bits, by which we claim the address",
    ] = None

    def check(self) -> None:
        if len(self.root) > TOKENS_MAX - 3:
            raise ValueError(
                f"root: message, source and signal follow it, so it has at most {TOKENS_MAX - 3}"
            )
        if self.per == "message" and self.form != "text":
            raise ValueError("form is of signals: a message is JSON")
        if (self.address is None) != (self.name is None):
            raise ValueError("address and name go together: by both an address is claimed")
        if not self.sends and (self.initial or self.fill or self.cycle or self.address is not None):
            raise ValueError("initial, fill, cycle and address are of messages that are sent: add send or as")

    @property
    def noun(self) -> str:
        return f"a message of {self.file}"

    @property
    def sends(self) -> bool:
        """Whether anything may be sent."""
        return bool(self.send) or self.sender is not None

    def database(self) -> Database:
        """Return what the file has, with `j1939` applied. Raises OSError, ImportError or `Unreadable`."""
        return read(self.path(self.file), self.j1939)

    def database_or_none(self) -> Database | None:
        """Return what the file has; None if it cannot be read, which `problems` tells."""
        try:
            return self.database()
        except (OSError, ImportError, ValueError):
            return None

    def sent(self, database: Database) -> tuple[str, ...]:
        """Return the names of the messages of a database that are sent."""
        own = () if self.sender is None else database.sent_by(self.sender)
        return tuple(name for name in dict.fromkeys((*self.send, *own)) if name in database.messages)

    def received(self, database: Database) -> tuple[str, ...]:
        """Return the names of the messages of a database that come in."""
        sent, wanted = set(self.sent(database)), self.receive
        return tuple(
            name for name in database.messages if name not in sent and (wanted is None or name in wanted)
        )

    @property
    def anew(self) -> bool:
        return self.form == "json" or self.per == "message" or self.every_ms is not None

    @property
    def way(self) -> Way:
        inward = (
            ((*self.root,),) if self.receive is None else tuple((*self.root, name) for name in self.receive)
        )
        names: tuple[str, ...] = self.send
        if self.sender is not None:
            database = self.database_or_none()
            names = self.send if database is None else self.sent(database)
        return Way(inward, tuple((*self.root, name) for name in names))

    @property
    def claim(self) -> Claim | None:
        database = self.database_or_none()
        if database is None:
            return None
        received, sent = (
            selection_of(database.messages[name] for name in names)
            for names in (self.received(database), self.sent(database))
        )
        return Claim(received, sent, spares=True)

    def filters(self) -> tuple[tuple[int, int], ...] | None:
        database = self.database_or_none() if self.receive is not None else None
        if database is None:
            return None
        messages = [database.messages[name] for name in (*self.received(database), *self.sent(database))]
        return filters_of(messages, bool(self.sent(database)))

    def needs(self) -> Iterator[Need]:
        yield Library("cantools", "cantools", "dbc")
        yield Readable(self.path(self.file))

    def files(self) -> Iterator[str]:
        yield self.path(self.file)

    def names(self) -> Iterator[str]:
        database = self.database_or_none()
        for message in () if database is None else database.messages.values():
            yield message.name
            yield from (signal.name for signal in message.signals)

    def quantities(self) -> Iterator[Quantity]:
        database = self.database_or_none()
        if database is None or self.per == "message":
            return
        sent = set(self.sent(database))
        for name in (*self.received(database), *sent):
            message = database.messages[name]
            for one in message.signals:
                pattern = (*self.base(message, self.address if name in sent else None), one.name)
                place = len(self.root) + 1 if message.is_j1939 and name not in sent else None
                is_command = name in sent and one.name not in chosen_for(message, self.fill)
                facts = one.unit, one.low, one.high, named(one), is_command, place
                yield Quantity(pattern, self.form, *facts, any_word="SOURCE")

    def base(self, message: Message, source: int | None = None) -> Names:
        """Return the pattern of a message, for J1939 with a source: by default as the database names it."""
        found = (*self.root, message.name)
        return (*found, message.id & 0xFF if source is None else source) if message.is_j1939 else found

    def cycles(self) -> Iterator[Cycle]:
        database = self.database_or_none()
        for one in () if database is None else database.messages.values():
            if one.cycle_ms:
                item: CanFrame = (one.identifier, bytes(min(one.size, 8 if one.is_j1939 else 64)), one.marks)
                yield Cycle(one.name, one.cycle_ms / 1000, item)

    def leaving(self) -> Iterator[tuple[str, CanFrame]]:
        database = self.database_or_none()
        sent = [] if database is None else [database.messages[name] for name in self.sent(database)]
        yield from ((one.name, (one.identifier, bytes(one.size), one.marks)) for one in sent)

    def wanted(self, database: Database) -> Wanted:
        """Return what is to be sent."""
        names, age_s = self.sent(database), self.age_ms / 1000
        station = self.address, self.name
        return Wanted(names, self.initial, self.fill, self.cycle, age_s, self.form, *station)

    def problems(self) -> Iterator[Problem]:
        path = self.path(self.file)
        try:
            database = self.database()
        except ImportError:
            yield Problem(f"{self.file} is not checked: {MISSING}", is_error=False)
        except OSError as error:
            yield Problem(f"{self.file} cannot be read: {error.strerror or words_of(error)}")
        except Unreadable as error:
            place = Where(path, error.line, error.column or 1, self.where.path) if error.line else None
            yield Problem(plain(f"{self.file}: {error}" if place is None else f"{error}"), where=place)
        except ValueError as error:
            yield Problem(f"{self.file}: {error}")
        else:
            named = {"send": self.send, "receive": self.receive or ()}
            found = problems(database, named, self.sender, self.wanted(database))
            yield from (Problem(plain(f"{self.file}: {text}"), is_error) for text, is_error in found)

    def label(self) -> str:
        return f"dbc {self.file}"
