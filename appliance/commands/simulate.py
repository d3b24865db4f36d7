"""`buscoupler simulate FILE`: run all gateways of a topology in virtual time, with traffic and faults."""

import argparse
import sys

from appliance.commandline.arguments import above_zero, argument
from appliance.simulated.stated import VERBS, Deed, Traffic
from bridges.simulate import SimulationError
from bus.wire.notation import pattern_of

_RATE_MAX = 1000.0


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(fail=parser.error)
    parser.add_argument("file", metavar="FILE", help="the topology")
    parser.add_argument(
        "--traffic", action="append", default=[], type=argument(_traffic), metavar="PLACE=PATTERN@RATE",
        help="send messages at a bus, or a wire by its device, so many a second, up to 1000 (repeatable)",
    )  # fmt: skip
    parser.add_argument(
        "--at", action="append", default=[], type=argument(_deed), metavar="DEED@SECONDS",
        help="'fail GATEWAY', 'stop GATEWAY', 'restart GATEWAY', 'cut WHAT' or 'mend WHAT' (repeatable)",
    )  # fmt: skip
    parser.add_argument("--seconds", type=above_zero, default=10.0, metavar="N", help="for N seconds (10)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="draw chance from this seed (0)")


def _traffic(word: str) -> Traffic:
    place, _, rest = word.partition("=")
    pattern, _, rate = rest.rpartition("@")
    if not (place and pattern):
        raise ValueError("write PLACE=PATTERN@RATE, such as can0=motor/speed@10")
    pattern_of(pattern)
    return Traffic(place, pattern, _number(rate, _RATE_MAX))


def _deed(word: str) -> Deed:
    deed, _, at = word.rpartition("@")
    word, _, target = deed.partition(" ")
    verb = next((one for one in VERBS if one == word), None)
    if verb is None or not target:
        raise ValueError("write 'fail GATEWAY@SECONDS', or stop, restart, cut or mend")
    return Deed(verb, target, _number(at, 1e9))


def _number(word: str, most: float) -> float:
    try:
        value = float(word)
    except ValueError:
        value = 0.0
    if not 0 < value <= most:
        raise ValueError(f"{word!r} is not a number above 0 and at most {most:g}")
    return value


def run(options: argparse.Namespace) -> int:
    """Run it and print the outcome. Return 0 if a message crossed, else 1."""
    from appliance.simulated.plant import SimulatedPlant
    from appliance.simulated.scenario import Scenario

    if not options.traffic:
        options.fail("nothing is sent: give at least one --traffic PLACE=PATTERN@RATE")
    if len({tuple(pattern_of(one.pattern)) for one in options.traffic}) < len(options.traffic):
        options.fail("two --traffic of one pattern cannot be told apart: give each its own")
    late = [deed for deed in options.at if deed.at_s >= options.seconds]
    if late:
        options.fail(f"--at {late[0].verb} {late[0].target}@{late[0].at_s:g}: the run ends before: --seconds")
    try:
        plant = SimulatedPlant(options.file, options.seed)
        try:
            scenario = Scenario(plant, options.traffic, options.at, options.seconds)
            scenario.run()
        finally:
            plant.close()
    except SimulationError as error:
        print(f"buscoupler simulate: {error}", file=sys.stderr)
        return 1
    print("\n".join(scenario.lines()), flush=True)
    return int(not scenario.crossed)
