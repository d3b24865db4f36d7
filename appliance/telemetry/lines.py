"""Lines of the log on their way to a collector: those that the log shows, held back if they repeat."""

import logging
import time
from collections.abc import Callable

from appliance.log.repeats import Repeats, message_of
from appliance.telemetry.otlp import LOGS, line
from appliance.telemetry.sender import Entry, Sender


class ExportedLines(logging.Handler):
    """A handler of the root logger that offers each line to a sender. Of one cause, it sends one in 10 s."""

    def __init__(self, sender: Sender, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._sender, self._clock = sender, clock
        self._repeats = Repeats()

    def emit(self, record: logging.LogRecord) -> None:
        """Offer a record, from any thread, after lines whose repetitions were held back long enough."""
        for held in self._repeats.due(self._clock()):
            self._send(held.last, f"{message_of(held.last)} (and {held.more} more)")
        if self._repeats.passes(record, self._clock()):
            self._send(record, message_of(record))

    def _send(self, record: logging.LogRecord, text: str) -> None:
        self._sender.offer(Entry(LOGS, line(record, text)))
