"""The serial ports that python-can makes: no write, flush or close lasts for ever, none is its own peer.

A port of pyserial without a time for writes tries again and again, without a pause, where a line takes
nothing, and its flush has no time. So do the constructor and the farewell of an adapter at such a line, and
their thread never ends.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import local
from types import ModuleType, SimpleNamespace
from typing import Any, Final

from bridges.media.draining import close_drained, drain
from bridges.media.selecting import loaded
from bus.machine.addresses import refuse_itself

WRITE_S = 1.0
_MAKERS: Final = ("Serial", "serial_for_url")


class _Opened(local):
    """The ports that are made while a bus is opened in this thread; None while none is."""

    ports: list[Any] | None = None


_opened: Final = _Opened()


def bound(library: str) -> None:
    """Let a library make ports whose writes end, as far as it is loaded. Idempotent."""
    for module in loaded(library):
        serial = vars(module).get("serial")
        if isinstance(serial, ModuleType) and serial.__name__ == "serial":
            makers = {maker: _noting(vars(serial)[maker], serial.Serial) for maker in _MAKERS}
            vars(module)["serial"] = SimpleNamespace(**vars(serial) | makers)


def _noting(make: Callable[..., Any], of_tty: type[Any]) -> Callable[..., Any]:
    def made(*words: Any, **settings: Any) -> Any:
        port = make(*words, **settings)
        _refuse_itself(port)
        port.write_timeout = WRITE_S
        if isinstance(port, of_tty) and port.is_open:
            port.flush, port.close = partial(_drain, port), partial(_close, port, port.close)
        if _opened.ports is not None:
            _opened.ports.append(port)
        return port

    return made


def _refuse_itself(port: Any) -> None:
    """Raise `ConnectionRefusedError` for a port by TCP, `socket://`, that is connected to itself."""
    sock = getattr(port, "_socket", None)
    if not isinstance(sock, socket.socket):
        return
    try:
        refuse_itself(sock)
    except OSError:
        port.is_open = False
        sock.close()  # pyserial ends both ways first, and then the number stays taken for a minute
        raise


@contextmanager
def opening() -> Iterator[None]:
    """Close the ports that are made in the block if it fails."""
    ports = list[Any]()
    _opened.ports = ports
    try:
        yield
    except BaseException:
        for port in ports:
            _release(port)
        raise
    finally:
        _opened.ports = None


def _drain(port: Any) -> None:
    if port.is_open:
        drain(port.fileno())


def _close(port: Any, close: Callable[[], None]) -> None:
    port.close = _nothing  # a thread may do it, and nobody else is to
    if port.is_open:
        close_drained(port.fileno(), close)


def _release(port: Any) -> None:
    """Close a port. A bus that could not be made still says farewell by it when Python collects it."""
    port.write, port.flush = len, _nothing
    with suppress(OSError):
        port.close()


def _nothing() -> None:
    """Do nothing."""
