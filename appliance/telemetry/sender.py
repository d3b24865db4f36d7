"""The sender of telemetry: it posts records to a collector in a thread of its own."""

from collections.abc import Mapping, Sequence
from itertools import islice, takewhile
from ssl import SSLContext
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from appliance.outbox import PAUSE_S, Outbox, Refused
from appliance.posting import LATER, post
from appliance.telemetry.otlp import Value, rejected, request
from bus.transports.secure import trusting
from devices.telemetry.device import PORT

WAITING: Final = 2048
"""Records that wait for the collector; more are dropped as `queue full`."""
_AT_ONCE: Final = 256
_TIMEOUT_S: Final = 5.0


class Entry(NamedTuple):
    """A record for a path of the collector."""

    path: str
    record: Mapping[str, Any]


class Sender(Outbox[Entry]):
    """Sends entries to a collector, those of one path together. `resource` says who sends."""

    def __init__(
        self,
        name: str,
        url: str,
        ca_file: str | None,
        resource: Mapping[str, Value],
        pause_s: float = PAUSE_S,
    ) -> None:
        super().__init__(
            f"{name}: telemetry",
            url,
            WAITING,
            self._post,
            together=_of_one_path,
            pause_s=pause_s,
        )
        self._ca_file, self._resource = ca_file, resource
        self._trust: SSLContext | None = None  # read anew after a fault: the file may have been renewed

    def _post(self, part: Sequence[Entry]) -> None:
        """Post entries. Raises `Refused`, `OSError`, and `HTTPException`."""
        path = part[0].path
        body = request(path, [one.record for one in part], self._resource)
        trust, self._trust = self._trust, None
        if trust is None and urlsplit(self.url).scheme == "https":
            trust = trusting(self._ca_file)
        status, answer = post(f"{self.url.rstrip('/')}{path}", body, {}, _TIMEOUT_S, trust, PORT)
        self._trust = trust
        said = f"the collector answered {status}"
        if status in LATER:
            raise ConnectionError(said)
        if status // 100 != 2:
            raise Refused(said)
        count, why = rejected(answer)
        if count:
            raise Refused(f"the collector rejected {count}: {why or 'it does not say why'}", count)


def _of_one_path(waiting: Sequence[Entry]) -> int:
    path = waiting[0].path
    return sum(1 for _ in takewhile(lambda one: one.path == path, islice(waiting, _AT_ONCE)))
