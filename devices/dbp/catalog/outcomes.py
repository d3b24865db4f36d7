"""The outcomes of a catalog's registry: replies, questions to services, and what a round found. Pure."""

from typing import Any, Final, NamedTuple

from devices.dbp.catalog import wire
from devices.dbp.catalog.body import pack_object
from devices.dbp.catalog.entry import FAULTS, LIVELINESS, Address, Entry
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
    """The outcome of a message: what to reply to its peer, if anything, and why it was refused, if it was.

    `kept`: who is listed, or with what, has changed, and is to be stored.
    """

    reply: Command | None = None
    refused: str = ""
    kept: bool = False


class Ask(NamedTuple):
    """A service to be sent a ping: at `address`; if that is None, to the peer that registered it.

    b"" means nobody: the peer is silenced, or the catalog has restarted since.
    The original ends at a ping whose time is in another form than its own: `binary_time`.
    """

    name: str
    address: Address | None
    peer: bytes
    binary_time: bool


class Round(NamedTuple):
    """A round of `tick` says whom to ask, who is suspect since the last round, and who is gone."""

    asks: tuple[Ask, ...]
    suspect: tuple[str, ...]
    gone: tuple[str, ...]


UNEXPECTED: Final = Outcome(Command(wire.DISCONNECT), "unexpected")


def life_of(service: Service, now_s: float) -> dict[str, Any]:
    """Return what is known of the life of a service (docs/wire/dbp.md, "The monitor")."""
    watch = service.watch
    state, silence_ms = watch.state(now_s).value, watch.silence_ms(now_s)
    return Life(state, silence_ms, round(1000 * watch.interval_s), service.host, watch.beats)._asdict()


def denied(*reasons: str) -> Outcome:
    """Return a refusal that says each reason in a frame."""
    texts = (f"{reason}: {_MEANINGS[reason]}" if reason in _MEANINGS else reason for reason in reasons)
    return Outcome(Command(wire.DENIED, tuple(text.encode() for text in texts)), reasons[0])


def changes(received: Received, entry: Entry) -> tuple[bytes, ...]:
    """Return the configuration that differs from what the service said: the interval of its beats."""
    agreed = entry.fields.get(LIVELINESS)
    if received.fields.get(LIVELINESS, agreed) == agreed:
        return ()
    return (pack_object({LIVELINESS: agreed}),)


def ask_of(service: Service) -> Ask:
    return Ask(service.entry.name, service.entry.router, service.peer, service.binary_time)
