"""The answer to a POST that acknowledges an alarm."""

import json
from http import HTTPStatus

from appliance.status.view import View
from appliance.web.messages import Request, Response, text

START = "/alarms/"
END = "/ack"


def is_acknowledging(path: str) -> bool:
    """Return whether a path is one to which a request may be posted."""
    return path.startswith(START) and path.endswith(END) and len(path) > len(START) + len(END)


def acknowledged(view: View, request: Request, person: str) -> Response:
    """Acknowledge the alarm of a path for a person, and `?of` it if that is given; else all of it."""
    name = request.path.removeprefix(START).removesuffix(END)
    try:
        found = view.acknowledge(name, request.query.get("of", ""), person)
    except KeyError:
        return text(HTTPStatus.NOT_FOUND, "no such alarm is watched here")
    if not found:
        return text(HTTPStatus.CONFLICT, "nothing of it is raised and not acknowledged")
    return Response(HTTPStatus.OK, json.dumps({"acknowledged": found}).encode() + b"\n", "application/json")
