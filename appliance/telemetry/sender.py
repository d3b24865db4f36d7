"""The sender of telemetry: a thread with a bounded queue, so that no collector ever holds up a gateway."""

import threading
from collections import deque
from collections.abc import Mapping
from http.client import HTTPException
from ssl import SSLContext
from typing import Any, Final
from urllib.parse import urlsplit

from appliance.posting import LATER, post
from appliance.telemetry.otlp import Value, request
from bus.errors import words_of
from bus.hub import Hub, State
from bus.ledger import Stats
from bus.text import plain
from bus.transports.secure import trusting
from devices.telemetry.device import PORT

WAITING: Final = 2048
"""Records that wait for the collector; more are dropped as `queue full`."""
_AT_ONCE: Final = 256
_TIMEOUT_S: Final = 5.0
_PAUSE_S: Final = 1.0
_PAUSE_MAX_S: Final = 60.0


class Sender:
    """Sends records to a collector; seen as a link. `offer` may be called from any thread and never waits.

    `resource` says who sends. `stats` hold offered = sent + dropped + queued. After a fault it waits 1 s,
    then twice as long each time, up to 60 s.
    """

    condition = ""

    def __init__(self, name: str, url: str, ca_file: str | None, resource: Mapping[str, Value]) -> None:
        self.name, self.url = f"{name}: telemetry", url
        self.state: State = "closed"
        self.fault, self.losses, self.queue_bytes = "", 0, 0
        self.stats = Stats()
        self._ca_file, self._resource = ca_file, resource
        self._trust: SSLContext | None = None  # read anew after a fault: the file may have been renewed
        self._queue: deque[tuple[str, Mapping[str, Any]]] = deque()
        self._changed = threading.Condition()
        self._ending = False
        self._thread: threading.Thread | None = None

    def open(self, hub: Hub, _: object) -> None:
        """Start the thread."""
        self.state, self._ending = "opening", False
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
        self._thread.start()

    def revise(self, other: object) -> bool:
        """Return False: another sender takes its place."""
        return False

    def offer(self, path: str, record: Mapping[str, Any]) -> None:
        """Queue a record for a path of the collector, or drop it and count that."""
        with self._changed:
            self.stats.offered += 1
            if self._ending or self.state == "closed":
                return self.stats.drop("closed")
            if self.stats.queued >= WAITING:
                return self.stats.drop("queue full")
            self._queue.append((path, record))
            self.stats.queued += 1
            self._changed.notify()

    def _run(self) -> None:
        pause_s = _PAUSE_S
        while (taken := self._take()) is not None:
            path, records = taken
            try:
                status = self._post(path, request(path, records, self._resource))
            except (OSError, HTTPException, ValueError) as error:
                self._trust = None
                status, words = 0, f"{type(error).__name__}: {plain(words_of(error))}"
            else:
                words = f"the collector answered {status}"
            if status // 100 == 2:
                pause_s = _PAUSE_S
                self._settle(len(records), "", "up", "")
            elif status and status not in LATER:
                self._settle(len(records), "refused", "up", words)
            else:
                self._put_back(path, records, words)
                with self._changed:
                    self._changed.wait_for(lambda: self._ending, pause_s)
                pause_s = min(2 * pause_s, _PAUSE_MAX_S)

    def _take(self) -> tuple[str, list[Mapping[str, Any]]] | None:
        """Wait for records of one path and take them, at most 256. Return None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._ending)
            if self._ending:
                return None
            path, records = self._queue[0][0], list[Mapping[str, Any]]()
            while self._queue and self._queue[0][0] == path and len(records) < _AT_ONCE:
                records.append(self._queue.popleft()[1])
            return path, records

    def _post(self, path: str, body: bytes) -> int:
        """Post a body. Return the status of the answer. Raises OSError and HTTPException."""
        if urlsplit(self.url).scheme == "https":
            self._trust = self._trust or trusting(self._ca_file)
        return post(f"{self.url.rstrip('/')}{path}", body, {}, _TIMEOUT_S, self._trust, PORT)

    def _settle(self, count: int, reason: str, state: State, fault: str) -> None:
        with self._changed:
            count = min(count, self.stats.queued)  # what the end has dropped is settled
            self.stats.queued -= count
            if reason:
                self.stats.drop(reason, count)
            else:
                self.stats.sent += count
            if not self._ending:
                self.state, self.fault = state, fault

    def _put_back(self, path: str, records: list[Mapping[str, Any]], fault: str) -> None:
        with self._changed:
            if self._ending:
                return
            self.losses += self.state == "up"
            self.state, self.fault = "waiting", fault
            self._queue.extendleft((path, record) for record in reversed(records))

    def close(self) -> None:
        """End the thread. What waits is dropped as `closed`. Idempotent, and does not wait for an answer."""
        with self._changed:
            self._ending, self.state = True, "closed"
            self.stats.drop("closed", self.stats.queued)
            self.stats.queued = 0
            self._queue.clear()
            self._changed.notify()
