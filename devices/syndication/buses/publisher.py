"""From what a query matches to frames of a bus. Pure.

A frame has the pattern of the rule, then one token: that of the producer's id, as if the id were a name. So
readers tell producers apart, and can subscribe to one. Metadata and differences are not said on the bus.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

from bus.wire.frame import DATA_BYTES_MAX, PUB, pack
from bus.wire.notation import text_of
from bus.wire.pattern import Pattern, token
from devices.syndication.buses.codecs import codec
from devices.syndication.buses.rules import QueryRule
from devices.syndication.client import Told
from devices.syndication.wire.messages import Publication

_TOKENS_KEPT = 4096
_token = lru_cache(_TOKENS_KEPT)(token)


class Outlet:
    """A rule as a client of the broker (`devices.syndication.client.Client`).

    `say` sends frames to the bus, `reject` counts what has no form there.
    """

    def __init__(
        self, rule: QueryRule, say: Callable[[list[bytes]], None], reject: Callable[[str, str], None]
    ) -> None:
        self.rule, self.host = rule, f"bus {rule.bus} {text_of(rule.pattern)}"
        self.fault = ""
        self._pattern = Pattern(*rule.pattern)
        self._codec = codec(rule)
        self._say, self._reject = say, reject

    def take(self, messages: Sequence[Told]) -> None:
        frames = [self._frame(one) for one in messages if isinstance(one, Publication)]
        self._say([frame for frame in frames if frame is not None])

    def _frame(self, publication: Publication) -> bytes | None:
        """Return a publication as a frame; None, counted, if its value has no form in the codec."""
        data = self._codec.encode(publication.value)
        if data is not None and len(data) <= DATA_BYTES_MAX:
            return pack(PUB, (*self._pattern, _token(publication.id)), data)
        self._reject(self._codec.reason if data is None else "oversize", self.host)
        return None

    def refuse(self, why: str) -> None:
        self.fault = why
