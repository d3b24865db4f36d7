"""A link to one peer over UDP, or to a broadcast address."""

import socket
from collections.abc import Callable, Sequence
from errno import EACCES, EADDRINUSE
from functools import partial
from typing import Any

from bridges.media.device import DeviceLink, OpenPipe, PipeContext
from bridges.media.likeness import likeness_of_datagram
from bridges.media.shedding import Shed
from bridges.media.spoken import unix_s
from bridges.media.udp.datagram import TmqDatagrams
from bridges.media.udp.medium import Udp
from bridges.media.udp.pipe import Ancillary, Opened, UdpPipe, source_of
from bridges.protocols.protocol import Protocol
from bridges.protocols.translator import Translator, Wire, always
from bus.hub import Link
from bus.machine.addresses import is_its_own_peer
from bus.noise import Ear
from bus.transports.binding import bind_words
from bus.transports.inlet import widen

_RECEIVE_BYTES = 4 << 20


def udp_link(options: Udp, shed: Shed | None = None, **retry: Any) -> "UdpLink":
    """Make the link of a peer that speaks TMQ."""
    return UdpLink(options, None, shed, **retry)


class UdpLink(DeviceLink[Opened]):
    """A UDP socket as a link. Without `protocol` its peer speaks TMQ. `may_act` is that of `Wire`.

    It hears its peer alone, or with `broadcast` whoever sends to its port. Of a name's addresses it takes the
    first that this machine can reach; where nobody listens and nothing was ever heard, it takes the next.
    """

    def __init__(
        self,
        options: Udp,
        protocol: Protocol | None,
        shed: Shed | None = None,
        may_act: Callable[[float], bool] = always,
        names: Sequence[str] = (),
        **retry: Any,
    ) -> None:
        self.options, self.protocol = options, protocol
        self._may_act, self.names = may_act, names
        self._silent = set[Any]()  # addresses of the peer at which nobody listens
        super().__init__(f"udp:{options.device}", shed, options.queue_bytes, **retry)

    @property
    def ear(self) -> Ear:
        noun, spoken = (
            ("a frame", "tmq") if self.protocol is None else (self.protocol.noun, self.protocol.key)
        )
        likely = partial(likeness_of_datagram, spoken=spoken)
        guess = "another program on this port"
        return Ear("datagrams", guess, sure=32, few=4, noun=noun, likeness=likely)

    @property
    def condition(self) -> str:
        said = self.pipe.condition if isinstance(self.pipe, UdpPipe) else ""
        return super().condition or said

    def _open_device(self) -> Opened:
        clock = partial(unix_s, self._loop.time)
        wire = Wire(self.name, "datagrams", self.stats, clock, 0.0, self._may_act, self.names)
        protocol = self.protocol
        made: Translator[bytes] = TmqDatagrams(wire) if protocol is None else protocol.translator(wire)
        return self._opened(made)

    def _opened(self, translator: Translator[bytes]) -> Opened:
        options = self.options
        found = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_DGRAM)
        places = [(family, peer) for family, _, _, _, peer in found]
        rest = [place for place in places if place[1] not in self._silent]
        if not rest:
            self._silent.clear()
        last: OSError | None = None
        for family, peer in rest or places:
            try:
                return self._opened_at(family, peer, translator, len(places) > 1)
            except OSError as error:
                last = error
        assert last is not None  # a name has an address, or there was an error
        raise last

    def _opened_at(self, family: int, peer: Any, translator: Translator[bytes], has_others: bool) -> Opened:
        options = self.options
        sock = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        source = list[Ancillary]()
        try:
            if options.broadcast:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                source = self._source(family)
            widen(sock, _RECEIVE_BYTES)
            # a socket that is bound to an address of ours hears no broadcast
            self._bind(sock, family, None if options.broadcast else options.own_host, options.heard_at)
            if not options.broadcast:
                _connect(sock, peer)
            sock.setblocking(False)
        except OSError:
            sock.close()
            raise
        if options.broadcast:
            return Opened(sock, peer, translator, source)
        return Opened(sock, None, translator, source, partial(self._silent.add, peer) if has_others else None)

    def _source(self, family: int) -> list[Ancillary]:
        """Return what a broadcast is sent with, so that it comes from `own_host`, if that is given."""
        if self.options.own_host is None:
            return []
        with socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as probe:
            self._bind(probe, family, self.options.own_host, 0)
            return [source_of(probe.getsockname()[0])]

    def _bind(self, sock: socket.socket, family: int, host: str | None, port: int) -> None:
        place = host or ("::" if family == socket.AF_INET6 else "0.0.0.0"), port
        try:
            sock.bind(place)
        except OSError as error:
            raise OSError(error.errno, bind_words(error, (family, place), udp=True)) from error

    def _release(self, device: Opened) -> None:
        device.sock.close()

    def _make_pipe(self, device: Opened, context: PipeContext) -> OpenPipe:
        device.translator.know(self.names)  # which a reload may have changed meanwhile
        return UdpPipe(device, self.shed, context)

    def revise(self, other: Link) -> bool:
        """Take over the names of another link, too."""
        if isinstance(other, UdpLink):
            self.names = other.names
            if isinstance(self.pipe, UdpPipe):
                self.pipe.know(self.names)
        return super().revise(other)


def _connect(sock: socket.socket, peer: Any) -> None:
    """Have the socket hear its peer alone. Raises `OSError`, also for a broadcast address, which is none, and
    for the socket's own: all that we send would come back as new."""
    try:
        sock.connect(peer)
    except OSError as error:
        if error.errno != EACCES:
            raise
        raise OSError(EACCES, f"{peer[0]} is a broadcast address here: write broadcast: true") from error
    if is_its_own_peer(sock):
        text = f"{peer[0]} is an address of this machine, and {peer[1]} our own port there too"
        raise OSError(EADDRINUSE, f"{text}: give own_port another number")
