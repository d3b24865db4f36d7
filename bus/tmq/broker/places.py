"""The places of a broker: the addresses at which it listens, with TLS or without, which a reload changes."""

import socket
from asyncio import AbstractEventLoop
from collections.abc import Mapping, Sequence
from functools import partial

from bus.errors import LinkError
from bus.serving.listener import Listener
from bus.tmq.address import is_secure, listening
from bus.tmq.wire import Address
from bus.transports.binding import Binding
from bus.transports.options import Tls
from bus.transports.secure import Security


class Places:
    """The addresses `where` of one `listener`, in the form of `Broker`'s `listen`.

    `tls` has the certificates of those that are `tls+tcp://`. `name` is used in errors. Raises `LinkError`.
    """

    def __init__(
        self, name: str, where: Sequence[str | Address], tls: Mapping[str, Tls], listener: Listener
    ) -> None:
        self._listener = listener
        self._secured = {listening(each): security_of(each, tls.get(str(each))) for each in where}
        if len(self._secured) < len(where):
            raise LinkError(f"{name}: an address is listed twice")
        self._bound: dict[Address, Address] = {}

    @property
    def addresses(self) -> list[Address]:
        """The addresses, with the bound ports once they are open."""
        return [self._bound.get(address, address) for address in self._secured]

    @property
    def urls(self) -> list[str]:
        """The URLs, with the bound ports once they are open."""
        schemes = ["tcp" if security is None else "tls+tcp" for security in self._secured.values()]
        places = zip(schemes, self.addresses, strict=True)
        return [f"{scheme}://{host}:{port}" for scheme, (host, port) in places]

    @property
    def bindings(self) -> list[Binding[Address]]:
        """The addresses at which the broker listens, or waits to, as a status shows them."""
        return list(self._listener.bindings.values())

    def open(self, loop: AbstractEventLoop, wait: bool) -> None:
        """Listen at all addresses. Raises `LinkError` for the first that fails; then none stays open.

        `wait`: it is no failure if an address is not there yet.
        """
        self._loop = loop
        try:
            for address, security in self._secured.items():
                if wait:
                    self._await(address, security)
                else:
                    self._bound[address] = self._listener.open(loop, address, security, socket.AF_INET)
        except LinkError:
            self._listener.close()
            self._bound.clear()
            raise

    def has(self, where: str) -> bool:
        """Return whether the broker listens, or waits to, at an address."""
        address = listening(where)
        is_here = address in self._bound or address in self._listener.bindings
        return is_here and is_secure(where) == (self._secured[address] is not None)

    def add(self, where: str, security: Security | None) -> None:
        """Listen at one more address, as soon as it is there. Raises `LinkError` if that is not possible."""
        address = listening(where)
        self._await(address, security)
        self._secured[address] = security

    def _await(self, address: Address, security: Security | None) -> None:
        keep = partial(self._bound.__setitem__, address)
        self._listener.await_address(self._loop, address, keep, security, socket.AF_INET)

    def leave(self, where: str) -> None:
        """Stop listening at an address. Clients that connected there stay."""
        address = listening(where)
        self._listener.shut(address if address in self._listener.bindings else self._bound[address])
        self._bound.pop(address, None)
        del self._secured[address]


def security_of(where: str | Address, tls: Tls | None) -> Security | None:
    """Return the TLS of an address, None for one without. This reads files, so do it on no event loop."""
    return Security(where, tls or Tls(), listens=True) if is_secure(where) else None
