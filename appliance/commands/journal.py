"""`buscoupler journal DIRECTORY`: list, verify, export, empty or send the journal of a durable trunk.

journal DIRECTORY
    list whose it is, its size, and what waits for each end
journal verify DIRECTORY
    look at every record: what is damaged, missing or there twice
journal export DIRECTORY FILE
    write its messages as pcapng, for Wireshark or `capture replay`
journal empty DIRECTORY --for GATEWAY --yes
    drop what waits for a gateway; no process may have it open
journal send DIRECTORY URL
    send what a dead gateway has left to the trunk of an end
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from appliance.commandline.arguments import above_zero
from appliance.commands.capture import opened
from appliance.probe.endpoint import RETRY_MAX_S, add_keys
from appliance.process.interrupts import status_of
from appliance.process.running import run_loop
from appliance.process.serve import Stop
from appliance.status.words import span, waits
from bridges.durable.emptying import BYTES, Emptying
from bridges.durable.wire import EndName
from bus.errors import BusError
from bus.journal.groups import Backlog
from bus.journal.journal import Journal
from bus.journal.record import Record
from bus.journal.summary import Summary, summarize
from bus.journal.verify import records, verify
from bus.keys import ring_of
from bus.machine.holders import holder_of_file
from bus.text import amount, plain
from bus.transports.links import bus_link
from bus.transports.options import Tls
from bus.wire.batch import Batch, payloads
from capture.pcapng import Packet, Writer
from capture.schema import Direction, Kind

_LOOK_S: Final = 0.02
_ABSENT: Final = "{}: no journal is here: name the directory of a durable trunk"
_FORMS: Final = {"verify": "", "export": "FILE", "empty": "", "send": "URL"}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (__doc__ or "").partition("\n\n")[2]
    parser.set_defaults(fail=parser.error)
    parser.add_argument(
        "words", nargs="+", metavar="WORD", help="a directory; or the words of a form below"
    )  # fmt: skip
    parser.add_argument(
        "--for", dest="gateway", metavar="GATEWAY", help="empty, export: what waits for this gateway"
    )
    parser.add_argument("--yes", action="store_true", help="empty: drop the messages")
    parser.add_argument(
        "--timeout", type=above_zero, default=10.0, metavar="S", help="send: wait S seconds for the end (10)"
    )
    parser.add_argument("--tls-ca", metavar="FILE", help="send: trust this authority (wss://, tls+tcp://)")
    add_keys(parser)


def run(options: argparse.Namespace) -> int:
    first, *rest = options.words
    form = first if first in _FORMS and (rest or not Path(first).is_dir()) else "list"
    given = rest if form != "list" else options.words
    wanted = ["DIRECTORY", *_FORMS.get(form, "").split()]
    if len(given) != len(wanted):
        forms = f"to list it, give DIRECTORY alone; other words: {', '.join(_FORMS)}"
        options.fail(forms if form == "list" else f"{form} takes {' '.join(wanted)}")
    directory = given[0]
    if Path(directory).is_file():
        raise BusError(_ABSENT.format(directory))
    if form == "verify":
        return _verify(directory)
    found = _summary(directory, options.gateway)
    if form == "export":
        return _export(directory, given[1], found, options.gateway)
    if form == "empty":
        return _empty(directory, found, options)
    if form == "send":
        return run_loop(send(directory, given[1], found, options))
    return _print(_listed(directory, found))


def _summary(directory: str, gateway: str | None) -> Summary:
    """Return what is in a directory. Raises `BusError` for no journal, or an unknown gateway."""
    found = summarize(directory)
    if not found.is_there:
        raise BusError(_ABSENT.format(directory))
    if gateway is not None and gateway not in found.ends:
        raise BusError(f"{directory}: nothing is kept for {gateway}: it keeps for {_names(found)}")
    return found


def _names(found: Summary) -> str:
    return ", ".join(found.ends) or "nobody"


def _print(lines: Iterator[str]) -> int:
    for line in lines:
        print(plain(line))
    return 0


def _listed(directory: str, found: Summary) -> Iterator[str]:
    now_s = time.time()
    if found.identity is not None:
        system, gateway, bus = found.identity.made_for
        whose = f"bus {bus} of gateway {gateway} in system {system}"
        age = span(max(0.0, now_s - found.identity.made_s))
        yield f"{directory}: journal {found.identity.id:016x} of {whose}, {age} old"
    which = f"numbers {found.first} to {found.next - 1}" if found.next > found.first else "no messages"
    yield f"  {which}, {found.segments} segments, {found.bytes / 1e6:.1f} MB"
    yield from (f"  for {name}: {_waiting(backlog, now_s)}" for name, backlog in found.ends.items())
    for journal, numbers in found.others.items():
        yield f"  of journal {journal}: {numbers.count:,} messages came, up to {numbers.last}"
    yield from (f"  {fault}" for fault in found.faults)
    if holder := holder_of_file(f"{directory}/lock"):
        yield f"  open in {holder}"


def _waiting(backlog: Backlog, now_s: float) -> str:
    end: dict[str, int] = {"messages": backlog.messages, "bytes": backlog.bytes}
    if backlog.oldest_ms is not None:
        end["oldest_ms"] = max(0, int(1000 * now_s) - backlog.oldest_ms)
    return waits(end)


def _verify(directory: str) -> int:
    """Print each segment and each fault. Return 1 if there is a fault, else 0."""
    found = verify(directory)
    if not (found.identity or found.segments or found.faults):
        raise BusError(f"{directory}: no journal is here: name the directory of a durable trunk")
    for one in found.segments:
        print(plain(f"{one.name}: {one.messages:,} messages, {one.first} to {one.last}, {one.size:,} bytes"))
    for fault in found.faults:
        print(plain(fault))
    print(f"{directory}: {len(found.faults)} faults" if found.faults else f"{directory}: ok")
    return int(bool(found.faults))


def _export(directory: str, target: str, found: Summary, gateway: str | None) -> int:
    """Write the messages as pcapng: all that can be read, or those that wait for a gateway. Return 0."""
    writer, count = Writer(), 0
    wanted: Callable[[int], bool] = (lambda _: True) if gateway is None else found.lacks[gateway].__contains__
    with opened(target) as file:
        file.write(writer.head())
        for record in records(directory):
            for packet in _packets(record, found):
                if wanted(packet.cap_seq):
                    file.write(writer.blocks(packet))
                    count += 1
    print(amount(count, "message"), file=sys.stderr)
    return 0


def _packets(record: Record, found: Summary) -> Iterator[Packet]:
    _, gateway, bus = ("", "", "") if found.identity is None else found.identity.made_for
    boot = 0 if found.identity is None else found.identity.id
    for number, message in enumerate(payloads(Batch(record.messages, record.count)), record.number):
        place = gateway, f"bus {bus}", f"bus {bus}", "", int(Direction.TX), int(Kind.FRAME)
        yield Packet(record.time_ms * 1_000_000, *place, 0, boot, number, 1, message)


def _whose(directory: str, found: Summary) -> EndName:
    if found.identity is None:
        raise BusError("\n".join(found.faults) or f"{directory}: nobody knows whose journal it is")
    return EndName(*found.identity.made_for)


def _journal(directory: str, found: Summary) -> Journal:
    """Open a journal. Raises `JournalError`, also if a process has it open."""
    journal = Journal(directory, _whose(directory, found), BYTES, 0, found.ends)
    journal.open()
    return journal


def _empty(directory: str, found: Summary, options: argparse.Namespace) -> int:
    """Drop what waits for a gateway. Return 0. Wrong use ends the program with status 2."""
    if options.gateway is None:
        options.fail(f"empty needs --for with a gateway: the journal keeps for {_names(found)}")
    waits = found.ends[options.gateway].messages
    if not options.yes:
        options.fail(f"{waits:,} messages for {options.gateway} would be lost: write --yes to drop them")
    journal = _journal(directory, found)
    try:
        count = journal.empty(options.gateway)
    finally:
        journal.close()
    print(f"{directory}: {count:,} messages for {options.gateway} dropped")
    return 0


async def send(directory: str, url: str, found: Summary, options: argparse.Namespace) -> int:
    """Send what is left. Return 0, or 1 if no end came in time; a signal ends it, and what came is noted."""
    if not any(backlog.messages for backlog in found.ends.values()):
        print(f"{directory}: nothing waits for {_names(found)}")
        return 0
    loop = asyncio.get_running_loop()
    stop = Stop(loop)
    tls = None if options.tls_ca is None else Tls(ca_file=options.tls_ca)
    keys = ring_of(options.keys)
    link = bus_link(url, "dial", tls=tls, trunk=True, keys=keys, wary=True, retry_max_s=RETRY_MAX_S)
    _journal(directory, found).close()  # says so at once if a process has it open
    emptying = Emptying(directory, _whose(directory, found), list(found.ends), link)
    emptying.open(loop)
    try:
        late_s = loop.time() + options.timeout
        while not (emptying.is_done or stop.is_set()):
            await asyncio.sleep(_LOOK_S)
            late_s = loop.time() + options.timeout if emptying.end is not None else late_s
            if loop.time() > late_s:
                raise BusError(
                    f"{url}: no end within {options.timeout:g} s: {emptying.trouble or 'nobody answers'}"
                )
        return _told(url, emptying, stop)
    finally:
        emptying.close()


def _told(url: str, emptying: Emptying, stop: Stop) -> int:
    end = emptying.end
    if end is not None:
        left = f", {end.files.queued:,} are left" if end.files.queued else ""
        print(f"{url}: gateway {end.gateway} has acknowledged {end.files.sent:,} messages{left}")
    return 0 if emptying.is_done else status_of(stop.number)
