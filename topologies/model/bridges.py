"""The records of bridges: their sides, with filters and shed policies."""

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from bridges.media import MEDIA
from bridges.media.medium import Medium
from bridges.protocols import PROTOCOLS
from bridges.protocols.protocol import Protocol, Way
from bus.schema import (
    BusName,
    ByGateway,
    Called,
    Key,
    Length,
    Milliseconds,
    Name,
    Names,
    OneOf,
    Patterns,
    QueueBytes,
    Range,
    Record,
    Single,
)
from bus.schema import Gateway as GatewayName
from bus.wire.pattern import token
from topologies.model.addresses import OwnKeys


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
    keys: OwnKeys = None

    def __post_init__(self) -> None:
        if self.bus is None and self.medium is None:
            raise ValueError("bus has no name: write the name of a bus")
        if self.pattern and (self.allow.both or self.allow.inward or self.allow.outward):
            raise ValueError("pattern and allow on one side: write the pattern into allow")
        if self.keys is not None and self.bus:
            raise ValueError("a bus is signed at its addresses: give the keys to these")
        if self.shed and self.bus:
            raise ValueError("nothing waits for a bus: give the shed policy to the side that is slow")
        if self.speaks is not None:
            _check_spoken(self, self.speaks)
        if self.medium is not None:
            _check_fit(self, self.medium)

    @property
    def speaks(self) -> Protocol | None:
        """The protocol of the devices; None for the default, TMQ."""
        return None if self.protocol is None or not self.protocol.items else self.protocol

    @property
    def way(self) -> Way | None:
        """The patterns that the medium or the protocol lets through by itself, as the bus knows them."""
        if self.medium is not None and self.medium.hears_only:
            return Way(None if self.speaks is None else self.speaks.way.inward, ())
        if self.speaks is not None:
            return self.speaks.way
        passing = self.medium and self.medium.passing
        return Way(passing.inward, passing.outward) if passing else None

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
        raise ValueError(f"{joined} does not carry the protocol {protocol.key}: leave protocol out")
    if side.trunk:
        raise ValueError("a side with a protocol cannot be a trunk: its devices know no envelopes")
    if side.medium is not None and side.medium.hears_only and protocol.way.outward != ():
        raise ValueError("the side only listens, so nothing is sent there: leave send out")
    if side.keys is not None:
        raise ValueError("keys have no effect here: the devices of a protocol sign nothing")


def _check_fit(side: Side, medium: Medium) -> None:
    """Raise ValueError if words of a side do not go with its medium."""
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
    rates: Annotated[tuple[Rate, ...], "promised traffic; `check` compares it with the media"] = ()

    def __post_init__(self) -> None:
        if len(set(self.on)) != len(self.on):
            raise ValueError("the same gateway is listed twice in on")

    def at(self, gateway: str) -> tuple[Side, ...]:
        """Return the sides as they are on one of the bridge's gateways."""
        return tuple(side.at(gateway) for side in self.join)
