"""A webhook gets JSON by POST, with a token, and its answers decide."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from appliance.alarms.outlets.webhook import delivery
from appliance.outbox import Refused
from tests.appliance.alarms.outlets.outlet_support import NOTICE, opened
from tests.helpers.peers import wait
from tests.helpers.ports import free_port
from topologies.model.alarms import WebhookSpec


@contextmanager
def serving(*answers: int) -> Iterator[tuple[str, list[Any]]]:
    """Serve these answers, and then 204. Yield the address, and the list of requests."""
    left, got = list(answers), list[Any]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.path, dict(self.headers), json.loads(body)))
            self.send_response(left.pop(0) if left else 204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with HTTPServer(("127.0.0.1", free_port()), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/hooks?plant=1", got
        finally:
            server.shutdown()
            thread.join()


def test_it_gets_all_values_after_faults_too(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    with serving(503, 429) as (url, got):
        outlet, through = opened(delivery(WebhookSpec(webhook=url, token_file=str(tmp_path / "token"))))
        outlet.offer(NOTICE)
        wait(lambda: through)
        outlet.close()
    assert len(got) == 3
    path, headers, body = got[-1]
    assert path == "/hooks?plant=1"
    assert headers["Authorization"] == "Bearer secret"
    assert {one[1]["Idempotency-Key"] for one in got} == {"plant/warm/fridge/1/3/raised"}
    assert body == NOTICE.record()
    assert outlet.stats.sent == 1


def test_an_answer_that_comes_a_letter_at_a_time_is_waited_for_no_longer_than_another() -> None:
    listener = socket.create_server(("127.0.0.1", free_port()))

    def drip() -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            while True:
                connection.sendall(b"H")
                time.sleep(0.1)

    thread = Thread(target=drip)
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with listener, pytest.raises(TimeoutError, match=r"no whole answer within 0\.3 s"):
        delivery(WebhookSpec(webhook=url, timeout_s=0.3))(NOTICE)
    thread.join()


@pytest.mark.parametrize("status", [301, 404, 500])
def test_other_answers_refuse(status: int) -> None:
    with serving(status) as (url, _), pytest.raises(Refused, match=str(status)):
        delivery(WebhookSpec(webhook=url))(NOTICE)
