"""The face of buscoupler: the names that a program imports.

`Bus` and `RawBus` are the sockets of a program on a bus. They carry a `Frame`, which has a `Pattern` of
tokens; `token` makes one of a name, and `Names` shows tokens by name. `Service` and `Client` are nodes that
find each other by a catalog, and `Request` is a message between them. `Event` is a report of a gateway or a
program about itself. `Tls` has certificates; `BusError` is the root of all errors. Names are loaded on first
use, so that the command starts fast. ARCHITECTURE.md describes the packages behind this one.
"""

from importlib import import_module

TYPE_CHECKING = False  # of `typing`, which takes long to import, while a first Ctrl-C shows a stack

if TYPE_CHECKING:
    from bus.client.socket import Bus, ClosedError, Peer, RawBus, Tls
    from bus.errors import BusError, FrameError, LinkError, TokenError, TopologyError
    from bus.events import Event, read_event
    from bus.names import Names
    from bus.wire.frame import Frame
    from bus.wire.pattern import Pattern, token
    from devices.dbp.nodes.client import Client, Publication
    from devices.dbp.nodes.listing import Listed
    from devices.dbp.nodes.presence import NodeError
    from devices.dbp.nodes.requests import Request
    from devices.dbp.nodes.service import Service

    __version__: str

__all__ = [
    "Bus",
    "BusError",
    "Client",
    "ClosedError",
    "Event",
    "Frame",
    "FrameError",
    "LinkError",
    "Listed",
    "Names",
    "NodeError",
    "Pattern",
    "Peer",
    "Publication",
    "RawBus",
    "Request",
    "Service",
    "Tls",
    "TokenError",
    "TopologyError",
    "__version__",
    "read_event",
    "token",
]

_ROOMS = {
    "bus.client.socket": ("Bus", "ClosedError", "Peer", "RawBus", "Tls"),
    "bus.errors": ("BusError", "FrameError", "LinkError", "TokenError", "TopologyError"),
    "bus.events": ("Event", "read_event"),
    "bus.names": ("Names",),
    "bus.wire.frame": ("Frame",),
    "bus.wire.pattern": ("Pattern", "token"),
    "devices.dbp.nodes.client": ("Client", "Publication"),
    "devices.dbp.nodes.listing": ("Listed",),
    "devices.dbp.nodes.requests": ("Request",),
    "devices.dbp.nodes.presence": ("NodeError",),
    "devices.dbp.nodes.service": ("Service",),
}
_ROOM = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a public name. Raises `ImportError` if a foreign module hides one of our packages."""
    if name == "__version__":
        from importlib.metadata import version

        return version("buscoupler")
    if name not in _ROOM:
        raise AttributeError(f"module 'buscoupler' has no attribute {name!r}")
    from buscoupler.packages import check_packages

    check_packages()
    return getattr(import_module(_ROOM[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
