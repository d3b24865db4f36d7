"""The pipe of a radio: that of a multicast group, whose datagrams get a number."""

from collections.abc import Callable, Sequence
from typing import Any

from bridges.media.device import PipeContext
from bridges.media.ieee802154.medium import NUMBER_BYTES, Ieee802154
from bridges.media.ieee802154.numbering import Inbound, Outbound
from bridges.media.multicast.fragments import is_fragment, is_last
from bridges.media.multicast.pipe import MulticastPipe
from bridges.media.rtnetlink import RUNNING, UP, LinkNews, News
from bridges.media.seals import Seals
from bridges.media.shedding import Shed
from bus.transports.intake import Received


class RadioPipe(MulticastPipe):
    """All other radios of the PAN, as one peer."""

    def __init__(
        self, radio: Any, options: Ieee802154, shed: Shed | None, context: PipeContext, seals: Seals | None
    ) -> None:
        super().__init__(radio, options, shed, context, seals)
        self._sent = list[bytes]()  # the fragments of a message that has begun
        self._outbound, self._inbound = Outbound(radio.stamp()[1]), Inbound(self.stats.rejected)

    def _fit(self, mtu: int) -> int:
        return self._datagram_bytes - NUMBER_BYTES

    def _opened(self, datagrams: Sequence[Received]) -> Sequence[Received]:
        return self._inbound.opened(datagrams)

    @property
    def _send_one(self) -> Callable[[bytes], int]:
        return self._send_numbered

    def _send_numbered(self, datagram: bytes) -> int:
        numbered = self._outbound.numbered(datagram)
        size = self._sockets.sender.send(numbered)
        self._outbound.sent()
        self._note(datagram)
        if self._wire.hears:
            self._wire.tell((numbered,), True)
        return size

    def _note(self, datagram: bytes) -> None:
        """Keep the fragments of a message until its last: of long messages, one has nearly always begun."""
        plain = self._encoder.plain(datagram) if is_fragment(datagram) else b""
        if not plain or is_last(plain):
            self._sent.clear()
        else:
            self._sent.append(datagram)

    @property
    def _begun(self) -> Sequence[bytes]:
        return self._sent

    def _trouble(self, news: News) -> str:
        return lost(self._sockets.interface.index, self._sockets.interface.name, news)


def lost(index: int, name: str, news: News) -> str:
    """Return why a radio can no longer be used; "" if it can."""
    if not isinstance(news, LinkNews) or news.ifindex != index:
        return ""
    if news.gone:
        return f"{name} is gone"
    is_up = news.flags & UP and news.flags & RUNNING
    return "" if is_up else f"{name} is down: run ip link set {name} up"
