"""`buscoupler explain PATTERN FILE --from LINK`: where a frame would go, and what would stop or delay it.

With `--live` a marked frame is sent through gateways that run, and each hop that they see is printed.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from json import dumps
from pathlib import Path
from shlex import quote

from appliance.commandline.arguments import above_zero, argument, free_text
from appliance.commands.run import checked_wiring
from appliance.explain.client import Start, new_mark, running, starts, trace
from appliance.explain.printer import plan_lines, plan_record, trace_lines, trace_record
from appliance.explain.rehearsal import Rehearsal
from appliance.explain.words import SECONDS_MAX
from appliance.local.places import no_process_text
from bus.errors import BusError
from bus.text import nearest
from bus.wire.frame import PUB, pack
from bus.wire.notation import names_in, pattern_of, text_of
from topologies.resolved.resolve import resolve_all

TRACE_S = 1.0
_LIVE = "seconds", "gateway", "run_directory"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pattern",
        type=argument(names_in),
        metavar="PATTERN",
        help="the pattern of the frame, like fridge/temp",
    )
    parser.add_argument(
        "file", nargs="?", metavar="FILE",
        help="the topology; - is standard input. With --live: only gateways that run it; all by default",
    )  # fmt: skip
    parser.add_argument(
        "--from", dest="start", metavar="LINK",
        help="the link by which the frame comes in, or a part of its name; without it, the links are listed",
    )  # fmt: skip
    parser.add_argument(
        "--data",
        type=free_text,
        default="",
        metavar="TEXT",
        help="the data of the frame; longer data takes longer",
    )
    parser.add_argument(
        "--live", action="store_true",
        help="send a real frame, with a mark behind its data, through the gateways that run on this machine,"
        " and tell what happens to it there. All who hear the pattern get it. Other machines are not asked",
    )  # fmt: skip
    parser.add_argument(
        "--seconds", type=above_zero, metavar="N",
        help=f"with --live: watch for N seconds (1, at most {SECONDS_MAX})",
    )  # fmt: skip
    parser.add_argument("--gateway", metavar="NAME", help="with --live: the frame comes in at this gateway")
    parser.add_argument(
        "--run-directory", type=Path, metavar="DIR",
        help="with --live: ask only the gateway that has this --run-directory",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(fail=parser.error)


def run(options: argparse.Namespace) -> int:
    given = next((name for name in _LIVE if vars(options)[name] is not None), None)
    if given is not None and not options.live:
        options.fail(f"--{given.replace('_', '-')} needs --live")
    if options.file is None and not options.live:
        options.fail("FILE is needed, or --live")
    if options.seconds is not None and options.seconds > SECONDS_MAX:
        options.fail(f"--seconds may be {SECONDS_MAX} at most")
    if options.live:
        return _live(options)
    return _planned(options, Rehearsal(resolve_all(checked_wiring(options.file)), options.pattern))


def _planned(options: argparse.Namespace, rehearsal: Rehearsal) -> int:
    known = {name: f"--from {quote(name)}" for name in rehearsal.starts()}
    if options.start is None:
        return _listed(known)
    start = chosen(list(known), options.start, list(known.values()))
    name, pattern = list(known)[start], text_of(options.pattern)
    hops = list(
        rehearsal.run(pack(PUB, pattern_of(pattern), options.data.encode(errors="surrogateescape")), name)
    )
    if options.json:
        print(dumps(plan_record(hops, name, pattern)))
    else:
        print("\n".join(plan_lines(hops, name, pattern)))
    return int(all(one.stopped for hop in hops for one in hop.exits))


def _live(options: argparse.Namespace) -> int:
    found, failed = running(options.run_directory)
    known = list(starts(found, options.file, options.gateway))
    if not known:
        others = [one.answer.title for one in found]
        told = no_process_text(options.file, options.gateway, options.run_directory, others)
        raise BusError("\n".join([told, *failed]))
    if options.start is None:
        return _listed(f"{start.link} (on {start.running.answer.gateway})" for start in known)
    start = known[chosen([one.link for one in known], options.start, [_typed(one) for one in known])]
    mark, seconds, pattern = new_mark(), options.seconds or TRACE_S, text_of(options.pattern)
    frame = pack(PUB, pattern_of(pattern), f"{options.data}{mark}".encode(errors="surrogateescape"))
    seen = trace(found, start, frame, mark, seconds, failed)
    if options.json:
        print(dumps(trace_record(seen, pattern, seconds)))
    else:
        print("\n".join(trace_lines(seen, pattern, seconds)))
    return int(not seen.delivered)


def _listed(links: Iterable[str]) -> int:
    """Print the links by which a frame can come in, and what to do with them."""
    print("\n".join(links))
    print("--from LINK says by which of these the frame comes in", file=sys.stderr)
    return 0


def _typed(start: Start) -> str:
    return f"--from {quote(start.link)} --gateway {quote(start.running.answer.gateway)}"


def _letters(text: str) -> str:
    """Return the letters and digits of a text, small, so that rs485 is also RS-485."""
    return "".join(filter(str.isalnum, text.lower()))


def chosen(names: Sequence[str], words: str, typed: Sequence[str]) -> int:
    """Return the index of the link that `words` name: by its whole name, or a part that only one name has.

    `typed` has the options that choose each link, for the error. Raises `BusError`.
    """
    every = range(len(names))
    plain, found = _letters(words), [n for n in every if names[n] == words]
    found = found or [n for n in every if words in names[n]]
    found = found or [n for n in every if plain and plain in _letters(names[n])]
    if len(found) == 1:
        return found[0]
    if found:
        choices = "\n".join(f"  {typed[n]}" for n in found)
        raise BusError(f'several links are like "{words}"; choose one with\n{choices}')
    raise BusError(f'no link "{words}"{nearest(words, names)}')
