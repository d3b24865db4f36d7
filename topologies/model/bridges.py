"""The records of bridges: their sides, with filters and shed policies."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Literal

from bridges.front.settings import Front
from bridges.front.settings import Limit as FrontLimit
from bridges.judge import Judge, Renamed
from bridges.media import MEDIA
from bridges.media.medium import Medium
from bridges.protocols import PROTOCOLS
from bridges.protocols.protocol import Protocol, Way
from bus.key_types import BusName, Milliseconds, Name, Names, Patterns, QueueBytes
from bus.key_types import Gateway as GatewayName
from bus.renaming import Renaming
from bus.schema import ByGateway, Called, Check, Key, Length, OneOf, Range, Record, Single, Table
from bus.wire.notation import names_in
from bus.wire.pattern import token
from topologies.model.addresses import OwnKeys

_REFRESH_MS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter(Record):
    """Lists of patterns. A list without `in` or `out` applies to both directions."""

    SHORT = "both"
    both: Annotated[Patterns, "patterns for both directions"] = ()
    inward: Annotated[Patterns, "patterns for frames that enter the bridge here", Key("in")] = ()
    outward: Annotated[Patterns, "patterns for frames that leave the bridge here", Key("out")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shed(Record):
    """A shed policy: what to drop if a medium gets more frames than it can carry."""

    SHORT = "policy"
    policy: Annotated[
        Literal["newest", "oldest", "conflate"],
        "drop the newest, drop the oldest, or keep only the latest frame of each pattern",
    ]
    age_ms: Annotated[Milliseconds | None, "frames that waited longer are dropped"] = None
    queue_bytes: Annotated[QueueBytes | None, "bound of the queue; the medium's by default"] = None
    rate: Annotated[Annotated[float, Range(0.001, 1e9)] | None, "most frames per second"] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit(Record):
    """A limit of the frames of one pattern, from all senders together; more of them are dropped."""

    pattern: Annotated[Names, "pattern of the frames"] = ()
    frames_per_s: Annotated[Annotated[float, Range(0.001, 1e9)], "the most that pass in a second"]
    direction: Annotated[Literal["in", "out"], "of frames that enter the bridge here, or that leave it"] = (
        "in"
    )


def _check_key(key: str) -> None:
    names_in(key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side(Record):
    """One side of a bridge: a bus of this file or one medium, with its policies."""

    bus: Annotated[BusName | None, "a bus of this file, on any gateway"] = None
    medium: Annotated[Medium | None, OneOf("a side", MEDIA, ("bus",))] = None
    protocol: Annotated[
        Annotated[Protocol, Called("a protocol", PROTOCOLS)] | None,
        "what the devices speak there; TMQ by default",
    ] = None
    trunk: Annotated[bool | None, "envelopes are kept here; by default only on a bus that has a trunk"] = None
    segment: Annotated[
        Name | None, "name of the wire; tells `check` that sides with the same name share a wire"
    ] = None
    pattern: Annotated[Names, "only frames that start with this cross here; short for one `allow`"] = ()
    allow: Annotated[Filter, "only these patterns cross here"] = Filter()
    deny: Annotated[Filter, "these patterns do not cross here"] = Filter()
    shed: Annotated[Shed | None, "what to drop above the capacity of the medium"] = None
    prefix: Annotated[
        Names, "put before the patterns of frames that enter, and taken off those that leave; others stay in"
    ] = ()
    strip: Annotated[
        Annotated[int, Range(1, 254)] | Names,
        "taken off the patterns of frames that enter, and put before those that leave; others stay out. With "
        "a number of tokens nothing leaves",
    ] = ()
    rename: Annotated[
        Mapping[Annotated[str, Check(_check_key, "pattern")], Names],
        "patterns on the wire, and what they are called in the bridge: both ways, the longest that fits. "
        "What enters loses `strip`, gets its name, and then `prefix`",
    ] = field(default_factory=Table)
    unchanged: Annotated[
        Literal["drop"] | None, "drop frames that enter with the data of the last one of their pattern"
    ] = None
    refresh_ms: Annotated[
        Milliseconds | None, "with `unchanged`, let one pass again after so long; 10,000 by default"
    ] = None
    limits: Annotated[
        tuple[Limit, ...], Length(0, 1024), "the most frames of patterns; the first that fits counts"
    ] = ()
    opaque: Annotated[
        Names | None, "messages of a bus that are no frames are frames of this pattern in the bridge"
    ] = None
    keys: OwnKeys = None
    late: Annotated[
        bool,
        "what waited in the journal of a durable trunk for more than 2 s leaves here too (docs/durable.md)",
    ] = False

    def __post_init__(self) -> None:
        if self.bus is None and self.medium is None:
            raise ValueError("bus has no name: write the name of a bus")
        if self.pattern and (self.allow.both or self.allow.inward or self.allow.outward):
            raise ValueError("pattern and allow on one side: write the pattern into allow")
        if self.keys is not None and self.bus:
            raise ValueError("a bus is signed at its addresses: give the keys to these")
        if self.shed and self.bus:
            raise ValueError("nothing waits for a bus: give the shed policy to the side that is slow")
        if self.late and self.bus:
            raise ValueError("late has no effect here: what is late goes to the programs of a bus anyway")
        if self.refresh_ms is not None and self.unchanged is None:
            raise ValueError("refresh_ms has no effect here: write unchanged: drop beside it")
        if self.opaque is not None and self.medium is not None and not self.medium.opaque:
            raise ValueError(f"{self.medium.key} carries frames only: opaque is for a bus or a url")
        _ = self.front  # which judges `rename`
        if self.speaks is not None:
            _check_spoken(self, self.speaks)
        if self.medium is not None:
            _check_fit(self, self.medium)

    @property
    def speaks(self) -> Protocol | None:
        """The protocol of the devices; None for the default, TMQ."""
        return None if self.protocol is None or not self.protocol.items else self.protocol

    @property
    def renaming(self) -> Renaming:
        """The patterns on the wire and inside the bridge."""
        return _renaming(self.strip, tuple(self.rename.items()), self.prefix)

    @property
    def front(self) -> Front:
        """The settings of the side's front; False if it has none."""
        refresh_s = (self.refresh_ms or _REFRESH_MS) / 1000 if self.unchanged else None
        made = (FrontLimit(one.pattern, one.frames_per_s, one.direction == "out") for one in self.limits)
        return Front(self.renaming, refresh_s, tuple(made), self.opaque)

    @property
    def way(self) -> Way | None:
        """The patterns that the medium or the protocol lets through by itself, as the bridge knows them."""
        passing = self.medium and self.medium.passing
        way = self.speaks.way if self.speaks is not None else None
        if passing:
            way = Way(passing.inward, passing.outward)
        if self.medium is not None and self.medium.hears_only:
            way = Way(None if way is None else way.inward, ())
        if way is None or not self.renaming:
            return way
        return Way(*(None if some is None else _inside(self.renaming, some) for some in way))

    @property
    def judge(self) -> Judge | None:
        """The judge of what its devices say and take, by the patterns inside the bridge; None for no need."""
        judge = None if self.speaks is None else self.speaks.judge
        return judge if judge is None or not self.renaming else Renamed(self.renaming, judge)

    @property
    def allowed(self) -> Filter:
        """The patterns of frames that may cross, by words of the side or its medium; an empty list is all."""
        own, way = Filter(both=(self.pattern,)) if self.pattern else self.allow, self.way
        if way is None:
            return own
        inward, outward = (*own.both, *own.inward), (*own.both, *own.outward)
        return Filter(inward=meeting(inward, way.inward), outward=meeting(outward, way.outward))

    @property
    def denied(self) -> Filter:
        """The patterns of frames that do not cross: `deny`, and all in a direction that lets nothing pass."""
        deny, way, allowed = self.deny, self.way, self.allowed
        if way is None:
            return deny
        inward = deny.inward if allowed.inward or way.inward is None else ((),)
        outward = deny.outward if allowed.outward or way.outward is None else ((),)
        return replace(deny, inward=inward, outward=outward)

    @property
    def kind(self) -> str:
        """Key of what the side joins: `bus` or a medium."""
        return "bus" if self.medium is None else self.medium.key


@lru_cache(maxsize=1024)  # checks ask each side again and again
def _renaming(strip: int | Names, rename: tuple[tuple[str, Names], ...], prefix: Names) -> Renaming:
    """Return the renaming of a side. Raises `ValueError` as `Renaming` does."""
    return Renaming(strip, tuple((tuple(names_in(key)), names) for key, names in rename), prefix)


def _inside(renaming: Renaming, patterns: Patterns) -> Patterns:
    """Return the patterns inside the bridge for frames of patterns on the wire."""
    return tuple(dict.fromkeys(one for names in patterns for one in renaming.inside(names)))


def meeting(some: Patterns, others: Patterns | None) -> Patterns:
    """Return the patterns of frames that match one of `some` and one of `others`. Without `some`, or with
    None for `others`, the other list alone decides; where both are given, the result may be empty."""
    if others is None:
        return some
    if not some:
        return others
    found = [max(one, other, key=len) for one in some for other in others if _is_start(one, other)]
    return tuple(dict.fromkeys(found))


def _is_start(one: Names, other: Names) -> bool:
    """Return whether one pattern is the start of the other."""
    short = min(len(one), len(other))
    return [token(name) for name in one[:short]] == [token(name) for name in other[:short]]


def _check_spoken(side: Side, protocol: Protocol) -> None:
    """Raise ValueError if a protocol does not go with what the side joins, or with the side's other words."""
    joined = (side.bus and f"a bus ({side.bus})") or side.kind
    carried = () if side.medium is None else side.medium.items
    if not set(carried) & set(protocol.items):
        fit = [key for key, kind in PROTOCOLS.known() if set(carried) & set(kind.items)]
        instead = f"use {', '.join(fit)}, or leave protocol out" if fit else "leave protocol out"
        raise ValueError(f"{joined} does not carry the protocol {protocol.key}: {instead}")
    if side.medium is not None and (unfit := protocol.unfit(side.medium.is_line)):
        raise ValueError(unfit)
    if side.medium is not None and (protocol.asks or protocol.holds) and any(side.medium.lets_in()):
        what = "asks its devices: dial them" if protocol.asks else "has one device: dial it"
        raise ValueError(f"{protocol.key} {what}, with mode: dial")
    if side.trunk:
        raise ValueError("a side with a protocol cannot be a trunk: its devices know no envelopes")
    if side.medium is not None and side.medium.hears_only and protocol.way.outward != ():
        raise ValueError("the side only listens, so nothing is sent there: leave send out")
    if side.keys is not None:
        raise ValueError("keys have no effect here: the devices of a protocol sign nothing")


def _check_fit(side: Side, medium: Medium) -> None:
    """Raise ValueError if words of a side do not go with its medium."""
    if unfit := medium.unfit(side.speaks is not None):
        raise ValueError(unfit)
    passing = medium.passing
    if passing and (side.pattern or side.allow != Filter()):
        keys = " and ".join(passing.keys)
        raise ValueError(f"{keys} of {medium.key} say what crosses here: leave pattern and allow out")
    if side.trunk and medium.plain:
        raise ValueError(
            f"{medium.key} carries no envelopes, so this side cannot be a trunk: leave trunk out"
        )
    if side.keys is not None and not side.trunk:
        raise ValueError("keys have no effect here: only a trunk is signed, so write trunk: true beside them")
    if side.keys and not medium.signs:
        raise ValueError(f"keys have no effect here: nothing is signed on {medium.key}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate(Record):
    """A promise of the applications: how many frames of a pattern cross this bridge."""

    pattern: Annotated[Names, "pattern of the frames"] = ()
    frames_per_s: Annotated[float, Range(0.001, 1e9), "frames per second, of all senders together"]
    data_bytes: Annotated[int, Range(0, 2048), "bytes of data in each frame"] = 8
    tokens: Annotated[
        Annotated[int, Range(0, 255)] | None, "tokens in each frame; as many as in the pattern by default"
    ] = None

    def __post_init__(self) -> None:
        if self.tokens is not None and self.tokens < len(self.pattern):
            raise ValueError(f"tokens: the pattern alone has {len(self.pattern)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeSpec(Record):
    """A bridge, which carries frames between buses and media, with policies for each side."""

    GATEWAYS = "on"
    on: Annotated[
        tuple[GatewayName, ...],
        Length(1, 64),
        Single(),
        "the gateway, or several, best first: the others are standbys",
    ]
    join: Annotated[
        tuple[ByGateway[Side], ...], Length(2, 64), "what it joins; each value may be given by gateway"
    ]
    pattern: Annotated[Names, "only frames that start with this cross"] = ()
    group: Annotated[
        Name | None, "bridges of one group stand in for each other, as do the gateways of one bridge"
    ] = None
    failover: Annotated[
        Literal["leased", "parallel"],
        "one gateway forwards at a time, which brokers choose, or all do, and receivers keep the first copy",
    ] = "leased"
    rates: Annotated[tuple[Rate, ...], "promised traffic; `check` compares it with the media"] = ()

    @property
    def is_parallel(self) -> bool:
        """Whether all gateways forward at once."""
        return self.failover == "parallel"

    def __post_init__(self) -> None:
        if len(set(self.on)) != len(self.on):
            raise ValueError("the same gateway is listed twice in on")

    def at(self, gateway: str) -> tuple[Side, ...]:
        """Return the sides as they are on one of the bridge's gateways."""
        return tuple(side.at(gateway) for side in self.join)
