"""Replay: the messages of a capture put back on a link, with the pauses between them, or faster."""

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import inf
from pathlib import Path
from typing import NamedTuple

from appliance.commandline.arguments import wrong_use
from appliance.probe.endpoint import Endpoint, parse_endpoint, say_confined
from appliance.probe.files import source_format
from appliance.probe.live import announce, is_raw, refuse_unless_live
from appliance.probe.raw import Choice, has_frames, raw_endpoint, raw_of, survey, translator_of
from appliance.probe.raw import messages as raw_messages
from appliance.probe.station import MESSAGE_COST_BYTES, Station
from appliance.probe.words import with_hints
from appliance.process.running import run_loop
from bus.errors import LinkError
from bus.keys import ring_of
from bus.text import amount, plain
from bus.wire.envelope import take_apart
from capture.files import CaptureError
from capture.formats.source import LeftOut
from capture.formats.table import PCAPNG
from capture.pcapng import Packet
from capture.reader import read
from capture.schema import Direction, Kind

PEER_S = 10.0
DRAIN_S = 10.0
_AT_ONCE = 256
_AT_ONCE_BYTES = 32 * 1024
_NEAR_NS = 250_000  # messages due within this time go together
_MANY, _MANY_NEAR_NS = 8, 1_000_000  # and within this one, if they are many: each look costs some 0.1 ms
_JUMP_NS = 86_400 * 10**9
_TOLD_S = 60.0
_FINE_S = 0.002  # the loop wakes up to 1 ms late, so the last part of a pause is slept in a thread


Timed = Iterator[tuple[int, bytes]]
"""Messages, each with its time in ns."""


def replay(source: Path, word: str, options: argparse.Namespace) -> int:
    """Replay a capture, or CAN frames of a file, to an endpoint.

    Return 1 if no peer came or some messages were not sent, else 0.
    """
    with wrong_use(options.fail, LinkError):
        has_frames_alone = _has_frames_alone(source, word, options)
        endpoint = raw_endpoint(word) if has_frames_alone else parse_endpoint(word)
    plan = _of_frames if has_frames_alone else _of_messages
    return run_loop(played(plan(source, endpoint, options), options))


class Plan(NamedTuple):
    """A replay: where to, what, anew each time, and the CAN identifiers that are in it."""

    endpoint: Endpoint
    timed: Callable[[], Timed]
    ids: frozenset[int] | None = None


def _has_frames_alone(source: Path, word: str, options: argparse.Namespace) -> bool:
    """Return whether CAN frames as they were on a wire are to be replayed, and no messages."""
    if source.exists() and not source.is_dir() and source_format(source) is not PCAPNG:
        return True
    if is_raw(raw_of(word)):
        return True
    return not any(map(selection(options), read(source))) and has_frames(source)


def _of_frames(source: Path, endpoint: Endpoint, options: argparse.Namespace) -> Plan:
    refuse_unless_live(endpoint, options.live)
    choose = Choice(options.hub, options.bus, options.dir)
    found = survey(source, choose)
    if found.errors:
        print(f"{source}: {found.errors} error frames are not sent", file=sys.stderr)
    for line in found.told:
        print(plain(f"{source}: {line}"), file=sys.stderr)
    return Plan(endpoint, lambda: raw_messages(source, choose, translator_of(endpoint)), found.ids)


def _of_messages(source: Path, endpoint: Endpoint, options: argparse.Namespace) -> Plan:
    wanted = selection(options)
    _check_choice(source, wanted)
    packets = partial(filter, wanted)
    return Plan(endpoint, lambda: timed(packets(read(source)), options.envelopes))


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
    """Raise `CaptureError` unless the rows are of one place: a frame would be sent once for each place. Print
    what is left out of a file."""
    left = LeftOut()
    places = Counter((packet.hub, packet.bus) for packet in read(source, left=left) if wanted(packet))
    for line in left.lines():
        print(plain(f"{source}: {line}"), file=sys.stderr)
    if not places:
        raise CaptureError(f"{source}: no such messages in it: leave out one of --hub, --bus and --dir")
    if len(places) > 1:
        lines = [
            f"  --hub '{hub}' --bus '{bus}': {amount(n, 'message')}"
            for (hub, bus), n in sorted(places.items())
        ]
        raise CaptureError("\n".join([f"{source}: seen at several places; say which:", *lines]))


async def played(plan: Plan, options: argparse.Namespace) -> int:
    """Send what a plan has, each message at its time. Return the exit status, as `replay` does."""
    endpoint, word = plan.endpoint, plan.endpoint.word
    say_confined(endpoint)
    if plan.ids is not None:
        await announce(endpoint, plan.ids)
    link = endpoint.link(hears=False, keys=ring_of(options.keys))
    async with Station(link, endpoint.uncounted) as station:
        if not await station.peer(PEER_S):
            return station.complain(
                "capture",
                f"{word}: no peer, device or broker within {PEER_S:g} s: start it, or check the endpoint",
            )
        for _ in range(options.loop):
            messages = plan.timed() if options.fast else steady(plan.timed(), _tell_jump)
            await _play(station, messages, inf if options.fast else options.speed)
        await station.drain(DRAIN_S)
    total = station.leaf.totals()
    print(f"{word}: {total.sent} messages sent", file=sys.stderr)
    if total.dropped:
        print(f"buscoupler capture: dropped: {with_hints(total.dropped)}", file=sys.stderr)
    if station.stops:
        return station.cut_short()
    return int(bool(total.dropped) or total.sent < total.offered)


async def _play(station: Station, timed: Timed, speed: float) -> None:
    loop = asyncio.get_running_loop()
    began_s, first_ns = loop.time(), None
    for due_ns, messages in together(timed, speed):
        first_ns = due_ns if first_ns is None else first_ns
        wait_s = began_s + (due_ns - first_ns) / 1e9 / speed - loop.time()
        cost_bytes = sum(len(message) + MESSAGE_COST_BYTES for message in messages)
        if wait_s > _TOLD_S:
            print(f"the next message of the capture comes in {wait_s:,.0f} s", file=sys.stderr)
        await _pause(station, wait_s)
        if station.stops or not await station.room(cost_bytes):
            return
        station.say(messages)


async def _pause(station: Station, wait_s: float) -> None:
    """Wait, to about 0.1 ms, unless a signal to stop comes."""
    loop = asyncio.get_running_loop()
    end_s = loop.time() + wait_s
    if wait_s > _FINE_S:
        await station.until(lambda: False, wait_s - _FINE_S)
    if not station.stops and (left_s := end_s - loop.time()) > 0:
        await loop.run_in_executor(None, time.sleep, left_s)


def timed(packets: Iterable[Packet], envelopes: bool) -> Timed:
    """Yield the messages of rows with their times; without `envelopes`, what is in them."""
    for packet in packets:
        yield packet.ts_ns, packet.message if envelopes else take_apart(packet.message).content


def steady(timed: Timed, on_jump: Callable[[int], None]) -> Timed:
    """Yield messages with times in which a jump of the clock, a day or more either way, is no pause.

    A logger without a clock begins in 1970 until it is told the time. `on_jump` gets each jump in ns.
    """
    last_ns, off_ns = None, 0
    for ts_ns, message in timed:
        step_ns = 0 if last_ns is None else ts_ns - last_ns
        if abs(step_ns) >= _JUMP_NS:
            off_ns += step_ns
            on_jump(step_ns)
        last_ns = ts_ns
        yield ts_ns - off_ns, message


def _tell_jump(step_ns: int) -> None:
    days = step_ns / _JUMP_NS
    print(f"the times of the capture jump by {days:+,.1f} days: sent without that pause", file=sys.stderr)


def together(timed: Timed, speed: float) -> Iterator[tuple[int, list[bytes]]]:
    """Yield messages that are due at about the same time, with that time in ns of the capture's clock."""
    held: list[bytes] = []
    held_ns = held_bytes = 0
    for ts_ns, message in timed:
        full = len(held) >= _AT_ONCE or held_bytes + len(message) > _AT_ONCE_BYTES
        near_ns = _NEAR_NS if len(held) < _MANY else _MANY_NEAR_NS
        if held and (full or ts_ns - held_ns > near_ns * speed):
            yield held_ns, held
            held, held_bytes = [], 0
        held_ns = held_ns if held else ts_ns
        held.append(message)
        held_bytes += len(message)
    if held:
        yield held_ns, held
