"""`buscoupler tokens NAME...`: print the token of each name, and names that share one."""

import argparse
import json
import sys

from appliance.commandline.arguments import argument
from appliance.commandline.names import names_argument, running
from bus.names import Names
from bus.wire.notation import names_in, written
from bus.wire.pattern import collisions, hexadecimal, token


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(fail=parser.error)
    parser.add_argument(
        "given", nargs="*", type=argument(names_in), metavar="NAME",
        help='a name, or a pattern like fridge/temp; digits, or 0x and hex digits, are a token, but a '
        'name in double quotes ("7")',
    )  # fmt: skip
    names_argument(parser, "also these names")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    """Print the tokens. Return 0, or 1 if two different names share a token."""
    given = [name for some in options.given for name in some]
    names: list[int | str] = list(dict.fromkeys([*given, *options.names]))
    if not names:
        options.fail("there are no names: give at least one NAME, or --names FILE")
    # A number that equals the token of a name in a file is a question for that name.
    found = collisions(given) | collisions(name for name in names if isinstance(name, str))
    print(_as_json(names, found) if options.json else _as_text(names), flush=True)
    for number, shared in found.items():
        text = " and ".join(map(written, shared))
        print(f"buscoupler tokens: {text} share the token {hexadecimal(number)}: rename one", file=sys.stderr)
    return int(bool(found))


def _as_text(names: list[int | str]) -> str:
    known = Names([*names, *(running() if any(isinstance(name, int) for name in names) else ())])
    words = (known.word(name) if isinstance(name, int) else written(name) for name in names)
    tokens = map(token, names)
    return "\n".join(f"{t:10} {hexadecimal(t)} {word}" for t, word in zip(tokens, words, strict=True))


def _as_json(names: list[int | str], found: dict[int, list[int | str]]) -> str:
    rows = [{"name": name, "token": token(name), "hex": hexadecimal(token(name))} for name in names]
    shared = [{"token": number, "names": those} for number, those in found.items()]
    return json.dumps({"tokens": rows, "collisions": shared})
