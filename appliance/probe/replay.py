"""Replay: the messages of a capture put back on a link, with the pauses between them, or faster."""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path

from appliance.probe.endpoint import parse_endpoint, say_confined
from appliance.probe.station import MESSAGE_COST_BYTES, Station
from appliance.process.running import run_loop
from appliance.status.ledger import reasons
from bus.hub import Link
from bus.keys import ring_of
from bus.wire.envelope import take_apart
from capture.files import CaptureError
from capture.pcapng import Packet
from capture.reader import read
from capture.schema import Direction, Kind

PEER_S = 10.0
DRAIN_S = 10.0
_AT_ONCE = 256
_AT_ONCE_BYTES = 32 * 1024
_NEAR_NS = 1_000_000  # messages due within this time go together


def replay(source: Path, word: str, options: argparse.Namespace) -> int:
    """Replay a capture to an endpoint. Return 1 if no peer came or some messages were not sent, else 0."""
    if options.speed <= 0:
        options.fail("--speed must be above 0")
    wanted = selection(options)
    _check_choice(source, wanted)
    frames = (packet for packet in read(source) if wanted(packet))
    endpoint = parse_endpoint(word)
    say_confined(endpoint)
    link = endpoint.link(hears=False, keys=ring_of(options.keys))
    return run_loop(_replay(frames, word, link, inf if options.fast else options.speed, options.envelopes))


def selection(options: argparse.Namespace) -> Callable[[Packet], bool]:
    """Return the test whether a row is to be replayed: a frame of the place that the options name."""
    direction = {"rx": Direction.RX, "tx": Direction.TX, None: None}[options.dir]

    def wanted(packet: Packet) -> bool:
        return (
            packet.kind == Kind.FRAME
            and options.hub in (None, packet.hub)
            and options.bus in (None, packet.bus)
            and direction in (None, packet.dir)
        )

    return wanted


def _check_choice(source: Path, wanted: Callable[[Packet], bool]) -> None:
    """Raise `CaptureError` unless the rows are of one place: a frame would be sent once for each place."""
    places = Counter((packet.hub, packet.bus) for packet in read(source) if wanted(packet))
    if not places:
        raise CaptureError(f"{source}: no such messages in it: leave out one of --hub, --bus and --dir")
    if len(places) > 1:
        lines = [f"  --hub '{hub}' --bus '{bus}': {n} messages" for (hub, bus), n in sorted(places.items())]
        raise CaptureError("\n".join([f"{source}: seen at several places; say which:", *lines]))


async def _replay(frames: Iterator[Packet], word: str, link: Link, speed: float, envelopes: bool) -> int:
    async with Station(link, parse_endpoint(word).uncounted) as station:
        if not await station.peer(PEER_S):
            return station.complain(
                "capture",
                f"{word}: no peer, device or broker within {PEER_S:g} s: start it, or check the endpoint",
            )
        await _play(station, frames, speed, envelopes)
        await station.drain(DRAIN_S)
    total = station.leaf.totals()
    print(f"{word}: {total.sent} messages sent", file=sys.stderr)
    if total.dropped:
        print(f"buscoupler capture: dropped: {reasons(total.dropped)}", file=sys.stderr)
    if station.stops:
        return station.cut_short()
    return int(bool(total.dropped) or total.sent < total.offered)


async def _play(station: Station, frames: Iterator[Packet], speed: float, envelopes: bool) -> None:
    loop = asyncio.get_running_loop()
    began_s, first_ns = loop.time(), None
    for due_ns, messages in together(frames, speed, envelopes):
        first_ns = due_ns if first_ns is None else first_ns
        wait_s = began_s + (due_ns - first_ns) / 1e9 / speed - loop.time()
        cost_bytes = sum(len(message) + MESSAGE_COST_BYTES for message in messages)
        if wait_s > 0:
            await station.until(lambda: False, wait_s)
        if station.stops or not await station.room(cost_bytes):
            return
        station.say(messages)


def together(
    frames: Iterator[Packet], speed: float, envelopes: bool = True
) -> Iterator[tuple[int, list[bytes]]]:
    """Yield messages that are due at about the same time, with that time in ns of the capture's clock."""
    near_ns = _NEAR_NS * speed
    held: list[bytes] = []
    held_ns = held_bytes = 0
    for packet in frames:
        message = packet.message if envelopes else take_apart(packet.message).content
        full = len(held) >= _AT_ONCE or held_bytes + len(message) > _AT_ONCE_BYTES
        if held and (full or packet.ts_ns - held_ns > near_ns):
            yield held_ns, held
            held, held_bytes = [], 0
        held_ns = held_ns if held else packet.ts_ns
        held.append(message)
        held_bytes += len(message)
    if held:
        yield held_ns, held
