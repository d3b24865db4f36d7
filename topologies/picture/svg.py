"""A drawing as SVG: planned, or marked with what is going on. Pure.

The status page shows the same SVG and changes its marks by the same ids (`data-id`).
"""

from collections.abc import Iterator, Mapping

from bus.text import escaped, markup
from topologies.picture.layout import NODE_HEIGHT, Box, Drawing, Edge, PictureNode
from topologies.picture.marks import PLANNED, SIGNS, Mark
from topologies.wiring.ids import gateway_id

_TYPE = {"name": (34, 8.2), "dim": (24, 6.4), "live": (24, 5.55)}
"""Pixels at which no character of a line of a node can stand, and the width of a character."""
_HEADER = (140, 13)  # the same for each of the two words at the head of a gateway
_CORNERS = {"bus": 18, "bridge": 4, "device": 10, "broker": 10, "wire": 0}


def svg(drawing: Drawing, marks: Mapping[str, Mark] | None = None, style: str = "") -> str:
    """Return an SVG document, without a last newline. Without `marks` it shows the plan alone.

    `style` is CSS that goes into it; without any, it needs the style of a page.
    """
    known, live = marks or {}, _fitting("live", drawing.node_width)
    size = f'viewBox="0 0 {drawing.width:g} {drawing.height:g}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="topology" role="img" {size} '
        f'data-live="{live}" '
        f"aria-label={_quoted(f'Topology {drawing.name}')}>",
        f"<style>{escaped(style)}</style>" if style else "",
        *(_box(box, known.get(gateway_id(box.gateway), PLANNED)) for box in drawing.boxes),
        *(line for edge in drawing.edges for line in _edge(edge, known.get(edge.id, PLANNED))),
        *(
            line
            for node in drawing.nodes
            for line in _node(node, known.get(node.id, PLANNED), drawing.node_width)
        ),
        "</svg>",
    ]
    return "\n".join(filter(None, lines))


def shorten(text: str, characters: int) -> str:
    """Return a text with its middle left out if it is too long."""
    half = (characters - 1) // 2
    return text if len(text) <= characters else f"{text[: characters - 1 - half]}…{text[-half:]}"


def _fitting(line: str, width: float) -> int:
    """Return how many characters of a line fit a node."""
    rim, character = _TYPE[line]
    return int((width - rim) / character)


def _box(box: Box, mark: Mark) -> str:
    place = f'x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}"'
    x, y = box.x + 14, box.y + 20
    room = int((box.width - _HEADER[0]) / _HEADER[1])
    return (
        f'<g class="gateway-box {mark.state}" data-id={_quoted(gateway_id(box.gateway))}>'
        f"<title>{markup(_title(gateway_id(box.gateway), mark))}</title>"
        f'<rect class="box" rx="10" {place}/>'
        f'<text x="{x:g}" y="{y:g}"><tspan class="gateway">{markup(shorten(box.gateway, room))}</tspan>'
        f' <tspan class="dim">{markup(shorten(box.address, room))}</tspan></text>'
        f'<text class="live end" x="{box.x + box.width - 14:g}" y="{y:g}">{markup(_headed(mark))}</text></g>'
    )


def _headed(mark: Mark) -> str:
    """Return what the head of a gateway has room for: a word, with a sign if all is not well."""
    return f"{SIGNS[mark.state]} {mark.word}" if mark.state in ("bad", "wait") else mark.word


def _edge(edge: Edge, mark: Mark) -> Iterator[str]:
    kinds = "".join(
        f" {word}"
        for word, on in (("trunk", edge.trunk), ("durable", edge.durable), ("standby", edge.standby))
        if on
    )
    x1, y1, ax, ay, bx, by, x2, y2 = edge.path
    middle = (x1 + 3 * ax + 3 * bx + x2) / 8, (y1 + 3 * ay + 3 * by + y2) / 8, 2
    x, y, lines = edge.label or middle
    below = f'x="{x:g}" dy="14"' if lines == 2 else 'dx="8"'
    arrows = _arrows(edge.path)
    told = [f"{arrow} {way}" for arrow, way in zip(arrows, mark.ways, strict=False)]
    first, second = (*told, "", "")[:2]
    yield f'<g class="edge{kinds} {mark.state}" data-id={_quoted(edge.id)} data-arrows="{arrows}">'
    yield f"<title>{markup(_title(edge.id, mark))}</title>"
    yield f'<path d="M{x1:g},{y1:g} C{ax:g},{ay:g} {bx:g},{by:g} {x2:g},{y2:g}"/>'
    yield f'<text y="{y + 4 - 7 * (lines - 1):g}"><tspan class="line" x="{x:g}">{markup(first)}</tspan>'
    yield f'<tspan class="line" {below}>{markup(second)}</tspan></text></g>'


def _arrows(path: tuple[float, ...]) -> str:
    """Return the arrow to the first node of an edge, and that to the other one."""
    x1, y1, x2, y2 = *path[:2], *path[-2:]
    if x1 == x2:
        return "↑↓" if y1 < y2 else "↓↑"
    return "←→" if x1 < x2 else "→←"


def _node(node: PictureNode, mark: Mark, width: float) -> Iterator[str]:
    x, y = node.x, node.y
    detail = " ".join(filter(None, (node.kind if node.kind != "wire" else "", node.detail)))
    yield f'<g class="node {node.kind} {mark.state}" data-id={_quoted(node.id)}>'
    yield f"<title>{markup(_title(node.id, mark))}</title>"
    yield (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{NODE_HEIGHT}" '
        f'rx="{_CORNERS.get(node.kind, 6)}"/>'
    )
    for kind, dy, text in (("name", 18, node.name), ("dim", 33, detail), ("live", 48, mark.text)):
        shown = shorten(text, _fitting(kind, width))
        yield f'<text class="{kind}" x="{x + 12:g}" y="{y + dy:g}">{markup(shown)}</text>'
    yield f'<text class="sign" x="{x + width - 10:g}" y="{y + 18:g}">{SIGNS[mark.state]}</text></g>'


def _title(thing: str, mark: Mark) -> str:
    return f"{thing}: {mark.text}" if mark.text else thing


def _quoted(text: str) -> str:
    """Return `text` as the value of an attribute, with its quotes."""
    return '"' + markup(text).replace('"', "&quot;") + '"'
