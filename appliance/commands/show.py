"""`buscoupler show FILE`: print a topology as a picture, in text, Mermaid or SVG; planned or live."""

import argparse
import sys
from collections.abc import Mapping
from typing import Literal

from appliance.commandline.arguments import page_url
from bus.errors import words_of
from topologies.loading.loader import load
from topologies.model import Topology
from topologies.picture.marks import SIGNS, Mark
from topologies.wiring.ids import gateway_id

LIVE = True  # no text, which argparse would check as a URL


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the topology; - is standard input")
    parser.add_argument("--format", choices=["text", "mermaid", "svg"], help="form of the drawing (text)")
    parser.add_argument("--svg", action="store_true", help="as --format svg")
    parser.add_argument(
        "--values", action="store_true", help="list the values of devices: pattern, unit, range and texts"
    )
    parser.add_argument(
        "--live", nargs="?", const=LIVE, metavar="URL", type=page_url,
        help="show what goes on: as the gateways of this machine say, or the status page at URL",
    )  # fmt: skip
    parser.set_defaults(fail=parser.error)


def run(options: argparse.Namespace) -> int:
    from topologies.picture.show import show

    form = _form(options)
    if options.values and (form != "text" or options.live is not None):
        options.fail("--values is a list: without --format, --svg and --live")
    if form == "mermaid" and options.live is not None:
        options.fail("--live marks a text or an SVG: --format mermaid has no place for it")
    topology = load(options.file)
    if options.values:
        return _values(topology)
    try:
        marks = None if options.live is None else _live(topology, options.live)
    except (OSError, ValueError) as error:
        why = f"{options.live}: {words_of(error)}" if isinstance(error, OSError) else str(error)
        print(f"buscoupler show: {why}", file=sys.stderr)
        return 1
    if marks is not None and not marks:
        print(f"buscoupler show: no gateway of {topology.name} answers: start one", file=sys.stderr)
        return 1
    if form == "svg":
        print(_svg(topology, marks))
        return 0
    print(show(topology, form))
    for line in _lines(marks or {}):
        print(line)
    return 0


def _form(options: argparse.Namespace) -> Literal["text", "mermaid", "svg"]:
    """Return the form of the drawing. Two that differ end the program with status 2."""
    form: Literal["text", "mermaid", "svg"] = options.format or ("svg" if options.svg else "text")
    if options.svg and form != "svg":
        options.fail(f"--svg is --format svg, and --format {form} is another form: give one of them")
    return form


def _values(topology: Topology) -> int:
    from bus.quantity.telling import line
    from topologies.quantities import quantities

    lines = [line(one) for one in quantities(topology)]
    print("\n".join(lines) or "no protocol of this topology knows its values", flush=True)
    return 0


def _svg(topology: Topology, marks: Mapping[str, Mark] | None) -> str:
    from appliance.web.assets import asset
    from topologies.picture.drawing import draw
    from topologies.picture.svg import svg

    return svg(draw(topology), marks, asset("drawing.css"))


def _live(topology: Topology, url: str | bool) -> dict[str, Mark]:
    """Return the marks of all gateways that answer. A gateway's word about itself counts most."""
    from appliance.commands.top import local_statuses
    from appliance.status.overlay import marks, own_marks
    from appliance.status.remote import ask_page

    statuses = [ask_page(url)] if isinstance(url, str) else local_statuses(None)[0]
    mine = [one for one in statuses if one["topology"] == topology.name and one["gateway"]]
    found = dict[str, Mark]()
    for status in mine:
        found |= {name: mark for name, mark in marks(status).items() if name not in found}
    for status in mine:
        here = gateway_id(status["gateway"])
        found |= own_marks(status) | {here: marks(status)[here]}
    return found


def _lines(marks: Mapping[str, Mark]) -> list[str]:
    """Return a line for each marked part, for a picture of text."""
    return [f"{SIGNS[mark.state]} {name}: {mark.text}" for name, mark in marks.items()]
