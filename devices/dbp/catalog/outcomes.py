"""The outcomes of a catalog's registry: replies, questions to services, and what a round found. Pure."""

from typing import Any, Final, NamedTuple

from devices.dbp.catalog import wire
from devices.dbp.catalog.body import pack_object
from devices.dbp.catalog.entry import FAULTS, LIVELINESS, Address, Entry, offered
from devices.dbp.catalog.services import Service
from devices.dbp.catalog.wire import Command, Received
from devices.dbp.monitor.wire import Life

REFUSED: Final = {
    "silenced": "the peer was invalid or got a disconnect, so it gets no answer any more",
    "unexpected": "a valid command that the peer may not say now",
    "name taken": "a living service has the name",
    "not yours": "the service registered from another host or connection",
    "other name": "a service that was asked answered with another name",
    "record": "what was stored is no service",
}
"""The reasons of refusals beside those of `wire.REFUSED`, `entry.FAULTS` and the quota of services."""

_MEANINGS: Final = {**FAULTS, **REFUSED}


class Outcome(NamedTuple):
    """The outcome of a peer's message: the reply, if any, and the reason of its refusal, or "".

    `kept` is True if the list has changed and must be stored.
    """

    reply: Command | None = None
    refused: str = ""
    kept: bool = False


class Ask(NamedTuple):
    """A service that must get a ping: at `address` or, if that is None, over the connection of its `peer`.

    A `peer` of b"" cannot be reached: it is silenced, or the catalog has restarted. `binary_time` is the form
    of time of the service, for the original implementation ends at a ping in another form. The service has
    registered from `host`.
    """

    name: str
    address: Address | None
    peer: bytes
    binary_time: bool
    host: str


class Round(NamedTuple):
    """The result of `Registry.tick`: services to ask, and the names of newly suspect and of gone services."""

    asks: tuple[Ask, ...]
    suspect: tuple[str, ...]
    gone: tuple[str, ...]


UNEXPECTED: Final = Outcome(Command(wire.DISCONNECT), "unexpected")


def life_of(service: Service, now_s: float) -> dict[str, Any]:
    """Return the liveness of a service as clients get it (docs/wire/dbp.md, "The monitor")."""
    watch = service.watch
    state, silence_ms = watch.state(now_s).value, watch.silence_ms(now_s)
    return Life(state, silence_ms, round(1000 * watch.interval_s), service.host, watch.beats)._asdict()


def denied(*reasons: str) -> Outcome:
    """Return a refusal with a frame for each reason."""
    texts = (f"{reason}: {_MEANINGS[reason]}" if reason in _MEANINGS else reason for reason in reasons)
    return Outcome(Command(wire.DENIED, tuple(text.encode() for text in texts)), reasons[0])


def changes(received: Received, entry: Entry) -> tuple[bytes, ...]:
    """Return the body that tells a service its agreed interval; () if that is the one it offered."""
    agreed = entry.fields.get(LIVELINESS)
    if offered(received.fields, entry.fields) == agreed:
        return ()
    return (pack_object({LIVELINESS: agreed}),)


def ask_of(service: Service) -> Ask:
    """Return the ping for a service."""
    return Ask(service.entry.name, service.entry.router, service.peer, service.binary_time, service.host)
