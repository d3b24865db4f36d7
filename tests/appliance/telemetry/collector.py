"""A collector of OpenTelemetry for tests: it keeps the bodies of requests, and answers as told."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


class Collector:
    """The requests so far, by path, and the answers to come; 200 without any."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, Any]]] = []
        self.answers: list[int] = []
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
            if status == 200:
                collector.got.append((self.path, json.loads(body)))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

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
