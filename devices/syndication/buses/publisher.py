"""The publisher of a query on a bus: it turns publications that match into frames. Pure.

A frame has the pattern of the rule, then one token, made of the producer's id as if it were a name. So
readers tell producers apart, and can subscribe to one. Metadata and differences do not appear on the bus.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

from bus.wire.frame import DATA_BYTES_MAX, PUB, pack
from bus.wire.notation import text_of
from bus.wire.pattern import Pattern, token
from devices.syndication.buses.codecs import codec
from devices.syndication.buses.rules import QueryRule
from devices.syndication.client import ClientMessage
from devices.syndication.wire.messages import Form, Publication

_TOKENS_KEPT = 4096
_token = lru_cache(_TOKENS_KEPT)(token)


class BusPublisher:
    """A rule as a client of the broker (`devices.syndication.client.Client`).

    `say` sends frames to the bus; `reject(reason, host)` counts a value that the rule's codec cannot encode.
    """

    def __init__(
        self, rule: QueryRule, say: Callable[[list[bytes]], None], reject: Callable[[str, str], None]
    ) -> None:
        self.rule, self.host = rule, f"bus {rule.bus} {text_of(rule.pattern)}"
        self.fault = ""
        self._pattern = Pattern(*rule.pattern)
        self._codec = codec(rule)
        self._say, self._reject = say, reject

    def take(self, messages: Sequence[ClientMessage]) -> None:
        """Send publications as frames to the bus."""
        frames = [self._frame(one) for one in messages if isinstance(one, Publication)]
        self._say([frame for frame in frames if frame is not None])

    def _frame(self, publication: Publication) -> bytes | None:
        """Return a publication as a frame; None, and count it, if the codec cannot encode its value."""
        data = self._codec.encode(publication.value)
        if data is not None and len(data) <= DATA_BYTES_MAX:
            return pack(PUB, (*self._pattern, _token(publication.id)), data)
        self._reject(self._codec.reason if data is None else "oversize", self.host)
        return None

    def refuse(self, why: str) -> None:
        """Note why the broker refused the query."""
        self.fault = why

    def deny(self, why: str, form: Form) -> None:
        """Do nothing: a rule that publishes to a bus is no producer."""
