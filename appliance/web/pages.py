"""The answers of a status page by their paths."""

import asyncio
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from appliance.history.rings import SCALES
from appliance.history.samples import KINDS
from appliance.plant.note import GATEWAY, note_of
from appliance.status.overlay import marks, own_marks, shown_marks
from appliance.status.schema import text as schema
from appliance.status.times import zone_s
from appliance.status.turns import as_json, snapshot_in_turns
from appliance.status.view import View
from appliance.status.words import troubles
from appliance.web.assets import asset
from appliance.web.messages import Request, Response, text
from appliance.web.page_model import drawn
from bus.text import plain
from topologies.picture.layout import NARROW, from_record, placed
from topologies.picture.svg import svg

EVENTS = "/events"
_HTML = "text/html; charset=utf-8"
FILES = {
    "/": ("page.html", _HTML),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/drawing.css": ("drawing.css", "text/css; charset=utf-8"),
    **{f"/{name}": (name, "image/svg+xml") for name in ("icon.svg", "icon-degraded.svg", "icon-trouble.svg")},
    "/plant": ("plant.html", _HTML),
    "/plant.js": ("plant.js", "text/javascript; charset=utf-8"),
    "/common.js": ("common.js", "text/javascript; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/curves.js": ("curves.js", "text/javascript; charset=utf-8"),
}
_JSON = "application/json"
_ROBOTS = "User-agent: *\nDisallow: /\n"


class Pages:
    """The answers to requests that the guard lets in. Slow work runs in a thread."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._made: Mapping[str, Callable[[Request], Any]] = {
            "/status.json": self._status,
            "/plant.json": self._plant,
            GATEWAY: self._gateway,
            "/topology.svg": self._picture,
            "/metrics": self._metrics,
            "/health": self._health,
            "/history.json": self._history,
            "/ready": self._ready,
        }

    async def answer(self, request: Request) -> Response:
        """Return the answer to a request, which may stream."""
        path = request.path
        if path in FILES:
            name, kind = FILES[path]
            return Response(HTTPStatus.OK, (await asyncio.to_thread(asset, name)).encode(), kind)
        if path in self._made:
            found: Response = await self._made[path](request)
            return found
        if path == EVENTS:
            return Response(HTTPStatus.OK, kind="text/event-stream", streams=True)
        if path == "/healthz":
            return text(HTTPStatus.OK, "ok")
        if path == "/schema.json":
            return Response(HTTPStatus.OK, schema().encode(), _JSON)
        if path == "/robots.txt":
            return Response(HTTPStatus.OK, _ROBOTS.encode())
        return text(
            HTTPStatus.NOT_FOUND,
            "nothing is here: see / for the page, /plant, /status.json, /metrics, /health",
        )

    async def _status(self, _: Request) -> Response:
        status = await snapshot_in_turns(self._view)
        return Response(HTTPStatus.OK, await asyncio.to_thread(as_json, status), _JSON)

    async def _gateway(self, _: Request) -> Response:
        """Return the note of this gateway, for the others of its plant."""
        status = await snapshot_in_turns(self._view, 0)
        return Response(HTTPStatus.OK, await asyncio.to_thread(_note, status), _JSON)

    async def _plant(self, _: Request) -> Response:
        """Return what this gateway knows of all gateways of its plant, with the marks of all their things."""
        plant, status = self._view.plant, await snapshot_in_turns(self._view, 0)
        if plant is None:
            return text(HTTPStatus.NOT_FOUND, "this process has no topology")
        shown, marks = plant.shown(status), plant.marks()
        return Response(HTTPStatus.OK, await asyncio.to_thread(_of_plant, status, shown, marks), _JSON)

    async def _picture(self, request: Request) -> Response:
        """Return the picture with marks. `?alone` adds its style, `?narrow` is for a phone."""
        status = await snapshot_in_turns(self._view, 0)
        if "drawing" not in status:
            return text(HTTPStatus.NOT_FOUND, "this process has no topology")
        shown = await asyncio.to_thread(_drawing, status, "narrow" in request.query, "alone" in request.query)
        return Response(HTTPStatus.OK, shown, "image/svg+xml")

    async def _metrics(self, request: Request) -> Response:
        status = await snapshot_in_turns(self._view, 0)
        body, kind = await asyncio.to_thread(_render, status, request.headers.get("accept", ""))
        return Response(HTTPStatus.OK, body, kind)

    async def _health(self, _: Request) -> Response:
        """Return the verdict, always by 200: a wire that is dead must not restart a gateway."""
        health = self._view.sampled().health
        return Response(HTTPStatus.OK, as_json({} if health is None else health.as_record()), _JSON)

    async def _history(self, request: Request) -> Response:
        """Return the curves of a `?kind`, of a `?span`: by default of what came in, and of 15 minutes."""
        kind, span = request.query.get("kind", "in"), request.query.get("span", "15m")
        try:
            made = self._view.curves(kind, span)
        except KeyError:
            kinds = ", ".join(one.name for one in KINDS)
            return text(HTTPStatus.NOT_FOUND, f"no such curves: kind is {kinds}; span is {', '.join(SCALES)}")
        return Response(HTTPStatus.OK, await asyncio.to_thread(lambda: as_json(made())), _JSON)

    async def _ready(self, _: Request) -> Response:
        why = list(troubles(await snapshot_in_turns(self._view, 0)))
        if why:
            return text(HTTPStatus.SERVICE_UNAVAILABLE, "\n".join(map(plain, why[:64])))
        return text(HTTPStatus.OK, "ready")


def _note(status: Mapping[str, Any]) -> bytes:
    return as_json(note_of(status, shown_marks(own_marks(status))))


def _of_plant(status: Mapping[str, Any], shown: Mapping[str, Any], others: Mapping[str, Any]) -> bytes:
    about = {key: status[key] for key in ("topology", "gateway", "product", "time_ns")}
    about |= {"zone_s": zone_s(status["time_ns"] / 1e9), "drawn": drawn(status)}
    return as_json({**about, **shown, "marks": {**others, **shown_marks(own_marks(status))}})


def _drawing(status: Mapping[str, Any], narrow: bool, alone: bool) -> bytes:
    drawing = from_record(status["topology"], status["drawing"])
    if narrow:
        drawing = placed(drawing, NARROW)
    return svg(drawing, marks(status), asset("drawing.css") if alone else "").encode()


def _render(status: Mapping[str, Any], accept: str) -> tuple[bytes, str]:
    from appliance.web.metrics import render  # late, and beside the loop: it takes 50 ms to load

    return render(status, accept)
