"""A simulated PAN of IEEE 802.15.4 radios: what one sends goes to all others, and not back to it."""

from typing import Any, ClassVar

from bridges.media.ieee802154.link import RadioLink
from bridges.media.ieee802154.medium import Ieee802154
from bridges.media.ieee802154.radio import SEND_BYTES
from bridges.simulate.multicast import MulticastEnd, MulticastWire
from bridges.simulate.wire import Faults, settings


class RadioWire(MulticastWire):
    """A PAN at 250 kbit/s; faults are drawn for each receiver separately. Radios never collide.

    With `stuck = True`, datagrams are lost without an error. `echoes`: a radio hears itself, too.
    """

    headers_bytes: ClassVar[int] = 6 + 15 + 2 + 20  # preamble, header, FCS, and the pause behind a long frame

    send_bytes: ClassVar[int] = SEND_BYTES

    def __init__(self, seed: int = 0, faults: Faults | None = None, echoes: bool = False) -> None:
        super().__init__(250_000 / 8, 127, seed, faults)
        self.echoes = echoes

    def carry(self, loop: Any, datagram: bytes, sender: Any) -> None:
        """Deliver a datagram to every radio that listens, but the one that sent it."""
        if self.stuck:
            return self.note(loop, str(sender), "stuck", datagram)
        self.note(loop, str(sender), "datagram", datagram)
        for member in self.members:
            if self.echoes or member.sockets is None or member.sockets.own != sender:
                member.hear(loop, datagram, sender)
        return None

    def link(self, name: str = "", **options: Any) -> Any:
        """Return a `RadioLink` of a new radio; `options`: fields of `Ieee802154`, arguments of the link."""
        return SimulatedRadio(self.member(name), **options)


class SimulatedRadio(RadioLink):
    """A `RadioLink` on a simulated radio; the rest is the real link."""

    def __init__(self, end: MulticastEnd, **options: Any) -> None:
        fixed: dict[str, Any] = {"interface": end.name, "pan": 0xBEEF}
        radio, rest = settings(end.wire, Ieee802154, options, **fixed)
        super().__init__(radio, **rest)
        self.end = end

    def _open_device(self) -> Any:
        return self.end.open(self._loop)
