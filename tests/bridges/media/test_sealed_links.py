"""Links of shared wires with keys: all sizes cross, strangers are not heard, what waits comes back plain."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bridges.media.device import DeviceLink
from bridges.media.medium import SEAL_BYTES
from bridges.media.multicast.datagram import Encoder
from bridges.media.multicast.send import Outbox
from bridges.media.seals import Seals
from bridges.media.shedding import Shed
from bridges.media.uart.codec import encode
from bridges.simulate import CanWire, Faults, MulticastWire, RadioWire, SerialLine, run
from bus.hub import Hub
from bus.keys import Keyring
from bus.ledger import Stats
from bus.wire.batch import from_payloads
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.bridges.support import SIZES, PtyPair, RecordingPipe, frame, recorder, say
from tests.helpers.links import uart_link
from tests.helpers.peers import until

OLD, NEW = Keyring((b"o" * 32,)), Keyring((b"n" * 32,))
Make = Callable[..., DeviceLink[Any]]
MESSAGES = [frame(size) for size in SIZES]


def uart(faults: Faults | None = None) -> Make:
    line = SerialLine(1_000_000, shared=True, faults=faults)
    return lambda number, **options: line.link(str(number), **options)


def can(faults: Faults | None = None) -> Make:
    wire = CanWire(faults=faults)
    return lambda number, **options: wire.link(number, **options)


def fd(faults: Faults | None = None) -> Make:
    wire = CanWire(faults=faults)
    return lambda number, **options: wire.link(number, fd=True, **options)


def multicast(faults: Faults | None = None) -> Make:
    wire = MulticastWire(faults=faults)
    return lambda _, **options: wire.link(**options)


def radio(faults: Faults | None = None) -> Make:
    wire = RadioWire(faults=faults)
    return lambda _, **options: wire.link(**options)


WIRES = pytest.mark.parametrize("wire", [uart, can, fd, multicast, radio])


class Host:
    """A hub with one link on a wire, and a recorder."""

    def __init__(self, make: Make, number: int, keys: Keyring | None, **options: Any) -> None:
        self.hub = Hub(str(number))
        self.heard: RecordingPipe = recorder(self.hub)
        signing = {} if keys is None else {"keys": keys}
        self.link = make(number, **signing, **options)
        self.link.open(self.hub, asyncio.get_running_loop())

    def say(self, *messages: bytes) -> None:
        say(self.hub, self.heard, *messages)

    @property
    def got(self) -> list[bytes]:
        return self.heard.messages


async def hosts(make: Make, *keys: Keyring | None, **options: Any) -> list[Host]:
    made = [Host(make, number + 1, ring, **options) for number, ring in enumerate(keys)]
    await until(lambda: all(host.link.state == "up" for host in made))
    return made


def close(*made: Host) -> None:
    for host in made:
        host.link.close()
        assert host.link.stats.balance() == 0


@WIRES
def test_all_sizes_cross_between_all_that_have_the_key(wire: Callable[[], Make]) -> None:
    async def scenario() -> None:
        a, b, c = made = await hosts(wire(), OLD, OLD, Keyring((b"n" * 32, b"o" * 32)))
        for message in MESSAGES:
            a.say(message)
            await until(lambda: b.got[-1:] == c.got[-1:] == [message])  # noqa: B023
        assert b.got == c.got == MESSAGES
        b.say(MESSAGES[0])
        await until(lambda: a.got == [MESSAGES[0]])
        assert not {"unsigned", "forged", "replayed", "clock"} & set(b.link.stats.rejected)
        close(*made)

    run(scenario())


@WIRES
def test_strangers_are_not_heard_and_the_log_says_why_once(
    wire: Callable[[], Make], caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        a, stranger, other = made = await hosts(wire(), OLD, None, NEW)
        for _ in range(3):
            stranger.say(*MESSAGES[:3])
            await asyncio.sleep(1)
            other.say(*MESSAGES[:3])
            await asyncio.sleep(1)
        rejected = a.link.stats.rejected
        assert a.got == []
        assert rejected["unsigned"] > 1
        assert rejected["forged"] > 1
        close(*made)

    run(scenario())
    told = [
        record.getMessage() for record in caplog.records if "give all on this wire" in record.getMessage()
    ]
    assert len([text for text in told if "it is not signed" in text]) == 2  # at both that have keys
    assert len([text for text in told if "with no key that is here" in text]) == 1


@pytest.mark.parametrize("wire", [uart, can, multicast, radio])
def test_what_a_network_doubles_or_bends_counts_once_or_not_at_all(wire: Callable[..., Make]) -> None:
    async def scenario() -> None:
        rate = 1e-3 if wire is uart else 0.05  # of bytes, or of frames and datagrams
        a, b = made = await hosts(wire(Faults(duplication=rate, corruption=rate)), OLD, OLD)
        said = [frame(30, number) for number in range(300)]
        for message in said:
            a.say(message)
            await asyncio.sleep(0.05)
        await asyncio.sleep(1)
        assert b.got == [message for message in said if message in set(b.got)]
        assert len(b.got) > 150
        close(*made)

    run(scenario())


@WIRES
@pytest.mark.parametrize("policy", ["newest", "conflate"])
def test_what_waits_can_be_taken_back_without_its_seal(wire: Callable[[], Make], policy: Any) -> None:
    async def scenario() -> None:
        a, b = made = await hosts(wire(), OLD, OLD, shed=Shed(policy, 1 << 20, 60.0, rate=2.0))
        said = [pack(PUB, Pattern(f"p{number}"), bytes(30)) for number in range(20)]
        a.say(*said)
        await asyncio.sleep(2)
        assert b.got
        assert a.link.pipe is not None
        purged = a.link.pipe.purge("fenced")
        assert purged
        assert set(purged) <= set(said)
        await asyncio.sleep(60)
        assert set(b.got).isdisjoint(purged)
        close(*made)

    run(scenario())


@WIRES
def test_other_keys_of_a_link_are_in_force_at_once(wire: Callable[[], Make]) -> None:
    async def scenario() -> None:
        make = wire()
        a, b, c = made = await hosts(make, OLD, OLD, OLD)
        pipes = a.link.pipe, b.link.pipe
        for ring in (Keyring((b"o" * 32, b"n" * 32)), Keyring((b"n" * 32, b"o" * 32)), NEW):
            for host in (a, b):
                assert host.link.revise(wire()(9, keys=ring))
                a.say(MESSAGES[0])
                await asyncio.sleep(1)
        assert b.got == [MESSAGES[0]] * 6
        assert c.got == [MESSAGES[0]] * 2, "who has the old key only hears what is signed with it"
        assert (a.link.pipe, b.link.pipe) == pipes
        assert not a.link.revise(wire()(9)), "to stop signing takes a new opening"
        close(*made)

    run(scenario())


async def test_what_was_recorded_on_a_line_is_not_heard_again(line: PtyPair) -> None:
    hub, sender = Hub(), Seals(OLD, "uart", 7, lambda: 1_764_000_000.0, {})
    heard = recorder(hub)
    link = uart_link(str(line.path), retry_min_s=0.01, keys=OLD, clock=lambda: 1_764_000_030.0)
    link.open(hub, asyncio.get_running_loop())
    await until(lambda: link.state == "up")
    recorded = b"".join(encode(sender.seal(frame(20, number))) for number in range(5))
    for _ in range(3):
        os.write(line.master, recorded)
    await until(lambda: sum(link.stats.rejected.values()) == 10)
    assert heard.messages == [frame(20, number) for number in range(5)]
    assert link.stats.rejected == {"replayed": 10}
    link.close()


def test_an_echo_on_a_line_of_two_wires_is_taken_out_sealed() -> None:
    async def scenario() -> None:
        line = SerialLine(115_200, shared=True, echo=True)
        make: Make = lambda number, **options: line.link(str(number), echo=True, **options)  # noqa: E731
        a, b = made = await hosts(make, OLD, OLD)
        a.say(*MESSAGES[:5])
        await until(lambda: b.got == MESSAGES[:5])
        await asyncio.sleep(1)
        assert a.got == []
        assert a.link.stats.rejected == {"echo": 5}
        assert a.link.echoes_lost == 0  # type: ignore[attr-defined]
        close(*made)

    run(scenario())


def test_a_queue_of_datagrams_gives_messages_back_without_their_seals() -> None:
    seals = Seals(OLD, "multicast", 1, lambda: 0.0, {})
    stats = Stats()
    outbox = Outbox(Encoder(1400, 1, 1, seals=seals), stats, 1 << 20)
    outbox.add(from_payloads(MESSAGES))
    assert outbox.purge("fenced") == MESSAGES
    assert stats.queued == 0


def test_the_longest_message_has_room_for_its_seal(tmp_path: Path) -> None:
    longest = frame(max(SIZES))
    seals = Seals(OLD, "uart", 1, lambda: 0.0, {})
    assert len(seals.seal(longest)) == len(longest) + SEAL_BYTES
    encode(seals.seal(longest))
