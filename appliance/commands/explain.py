"""`buscoupler explain PATTERN --from LINK FILE`: where a frame would go, and what would stop or delay it."""

import argparse
from collections.abc import Iterator
from json import dumps
from typing import Any

from appliance.commands.run import checked
from appliance.probe.words import argument
from appliance.rehearsal import AGAIN, Hop, Rehearsal, Way
from bus.errors import BusError
from bus.spelling import nearest
from bus.wire.frame import PUB, pack
from bus.wire.notation import names_in, pattern_of, text_of


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pattern", type=argument(names_in), metavar="PATTERN", help="the frame's, as fridge/temp"
    )
    parser.add_argument("file", metavar="FILE", help="the topology; - is standard input")
    parser.add_argument(
        "--from", dest="start", metavar="LINK",
        help="where it comes in: a part of the name of a link; without it, the links are listed",
    )  # fmt: skip
    parser.add_argument("--data", default="", metavar="TEXT", help="the frame's data, for its time on wires")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(options: argparse.Namespace) -> int:
    rehearsal = Rehearsal(checked(options.file))
    if options.start is None:
        print("\n".join(rehearsal.starts()))
        return 0
    start = chosen(rehearsal.starts(), options.start)
    frame = pack(PUB, pattern_of(text_of(options.pattern)), options.data.encode())
    hops = list(rehearsal.run(frame, start))
    if options.json:
        print(
            dumps(
                {"pattern": text_of(options.pattern), "from": start, "hops": [_record(hop) for hop in hops]}
            )
        )
    else:
        print(
            "\n".join(
                [f"{text_of(options.pattern)} from {start}", *(line for hop in hops for line in _lines(hop))]
            )
        )
    return int(not any(not way.stopped for hop in hops for way in hop.ways))


def chosen(starts: list[str], words: str) -> str:
    """Return the link that is meant: by its name, or by a part that only one name has. Raises `BusError`."""
    found = [name for name in starts if words == name] or [name for name in starts if words in name]
    if len(found) == 1:
        return found[0]
    if found:
        raise BusError(f'several links are like "{words}": {"; ".join(found)}')
    raise BusError(f'no link "{words}"{nearest(words, starts)}')


def _record(hop: Hop) -> dict[str, Any]:
    return {**hop._asdict(), "ways": [way._asdict() for way in hop.ways]}


def _lines(hop: Hop) -> Iterator[str]:
    stopped = f": stopped: {', '.join(hop.stopped)}" if hop.stopped else ""
    yield f"  {hop.part} on {hop.gateway}, by {hop.by}{stopped}"
    yield from (_way(way) for way in hop.ways)
    if hop.stopped != (AGAIN,):
        yield from (f"     . {remark}" for remark in hop.remarks)


def _way(way: Way) -> str:
    words = [f"stopped: {', '.join(way.stopped)}"] if way.stopped else []
    text = "; ".join([*words, *way.remarks])
    return f"    {'x' if way.stopped else '>'} {way.to}{f' ({text})' if text else ''}"
