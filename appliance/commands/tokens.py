"""`buscoupler tokens NAME...`: print the token of each name, and names that share one."""

import argparse
import json
import sys
from pathlib import Path

from appliance.probe.words import argument
from bus.names import names_from
from bus.wire.notation import name_of, written
from bus.wire.pattern import collisions, hexadecimal, token


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(fail=parser.error)
    parser.add_argument(
        "names", nargs="*", type=argument(name_of), metavar="NAME",
        help='a name; digits, or 0x and hex digits, are a token, but in double quotes a name ("7")',
    )  # fmt: skip
    parser.add_argument("--file", type=argument(_names_in), default=[], metavar="FILE",
                        help="a file with one name a line and # comments; - is standard input")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _names_in(file: str) -> list[int | str]:
    text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    return names_from(text.splitlines())


def run(options: argparse.Namespace) -> int:
    """Print the tokens. Return 0, or 1 if two different names share a token."""
    names: list[int | str] = list(dict.fromkeys([*options.names, *options.file]))
    if not names:
        options.fail("there are no names: give at least one NAME, or --file FILE")
    found = collisions(names)
    print(_as_json(names, found) if options.json else _as_text(names), flush=True)
    for number, shared in found.items():
        text = " and ".join(map(written, shared))
        print(f"buscoupler tokens: {text} share the token {hexadecimal(number)}: rename one", file=sys.stderr)
    return int(bool(found))


def _as_text(names: list[int | str]) -> str:
    return "\n".join(f"{token(name):10} {hexadecimal(token(name))} {written(name)}" for name in names)


def _as_json(names: list[int | str], found: dict[int, list[int | str]]) -> str:
    rows = [{"name": name, "token": token(name), "hex": hexadecimal(token(name))} for name in names]
    shared = [{"token": number, "names": those} for number, those in found.items()]
    return json.dumps({"tokens": rows, "collisions": shared})
