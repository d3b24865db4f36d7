"""The names that a command knows: those that its user gives, and those of the gateways that run here."""

import argparse
import sys
from pathlib import Path

from appliance.commandline.arguments import argument
from appliance.status.client import ask_all, status_sockets
from bus.errors import BusError
from bus.machine.files import text_of
from bus.names import names_from
from bus.text import lines_in
from capture.names import FILE_BYTES, given

TOPOLOGIES = (".yaml", ".yml")
_ANSWER_S = 0.3  # a gateway that hangs must not keep a command waiting


def names_argument(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add the option `--names`; `options.names` is then a list of names, empty without it."""
    parser.add_argument(
        "--names", type=argument(names_of), action="extend", default=[], metavar="FILE|A,B,C",
        help=f"{purpose}: a topology, a file with one a line (- is standard input), a directory of captures, "
        "or a list (repeatable)",
    )  # fmt: skip


def names_of(word: str) -> list[int | str]:
    """Return the names in a topology, file, directory of captures, or list: whichever `word` is.

    Raises `BusError`.
    """
    if word == "-":
        data = sys.stdin.buffer.read(FILE_BYTES + 1)
        if len(data) > FILE_BYTES:
            raise BusError(f"standard input: names have at most {FILE_BYTES} bytes")
        return names_from(lines_in(text_of(data)))
    if Path(word).suffix not in TOPOLOGIES:
        return given(word)
    from topologies.loading.loader import load  # late: the jobs need no YAML
    from topologies.names import known

    return [*known(load(word))]


def running() -> list[str]:
    """Return the names that gateways running on this machine know, if this user may ask them."""
    return [name for name in _told("names") if isinstance(name, str)]


def units() -> dict[str, str]:
    """Return the units of the values that gateways running on this machine show, by pattern."""
    rows = [row for row in _told("values") if isinstance(row, dict) and isinstance(row.get("unit"), str)]
    return {str(row.get("pattern")): row["unit"] for row in rows}


def _told(key: str) -> list[object]:
    """Return what all gateways that run here list under a key of their statuses."""
    found = list[object]()
    for _, status in ask_all(status_sockets(None), _ANSWER_S):
        listed = status.get(key) if isinstance(status, dict) else None
        found += listed if isinstance(listed, list) else []
    return found
