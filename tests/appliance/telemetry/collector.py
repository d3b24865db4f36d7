"""A collector of OpenTelemetry for tests: it keeps the bodies of requests, and answers as told.

It reads them by the protocol's own messages, as a collector does, and refuses what those do not have.
"""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final

from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_MESSAGES: Final[dict[str, type[Message]]] = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
}
_IDS: Final = {"traceId": 16, "spanId": 8, "parentSpanId": 8}
"""What the protocol's JSON has in hexadecimal digits, and the JSON of protobuf in base64; and its bytes."""


def fault(path: str, body: Any) -> str:
    """Return what is wrong with the body of a request; "" if nothing."""
    try:
        ParseDict(_with_bytes(body), _MESSAGES[path]())
    except (ParseError, KeyError, ValueError) as error:
        return f"{path}: {error!r}"
    return ""


def _with_bytes(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_bytes(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: _id(name, one) if name in _IDS else _with_bytes(one) for name, one in value.items()}


def _id(name: str, digits: str) -> str:
    data = bytes.fromhex(digits)
    if len(data) != _IDS[name]:
        raise ValueError(f"{name} has {len(data)} bytes")
    return base64.b64encode(data).decode()


class Collector:
    """The requests so far, by path, what was wrong with some, and the answers to come; 200 without any."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, Any]]] = []
        self.faults: list[str] = []
        self.answers: list[int] = []
        self.says = b""  # in its answers
        self.url = ""

    def spans(self) -> list[dict[str, Any]]:
        """Return all spans so far."""
        bodies = [body for path, body in self.got if path == "/v1/traces"]
        return [one for body in bodies for one in body["resourceSpans"][0]["scopeSpans"][0]["spans"]]

    def lines(self) -> list[dict[str, Any]]:
        """Return all lines of logs so far."""
        bodies = [body for path, body in self.got if path == "/v1/logs"]
        return [one for body in bodies for one in body["resourceLogs"][0]["scopeLogs"][0]["logRecords"]]


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector at a free port."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = collector.answers.pop(0) if collector.answers else 200
            if status == 200 and (wrong := fault(self.path, json.loads(body))):
                collector.faults.append(wrong)
                status = 400
            elif status == 200:
                collector.got.append((self.path, json.loads(body)))
            self.send_response(status)
            self.send_header("Content-Length", str(len(collector.says)))
            self.end_headers()
            self.wfile.write(collector.says)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert not collector.faults
