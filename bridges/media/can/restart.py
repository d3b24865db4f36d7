"""The restart of a SocketCAN controller after a bus-off, after growing pauses with jitter, if permitted."""

import errno
import logging
import os
import socket
from asyncio import AbstractEventLoop, Future, TimerHandle

from bridges.media.rtnetlink import restart_request, result
from bus.backoff import Backoff

log = logging.getLogger("buscoupler.bridges")

_ANSWER_S = 1.0
_PURGE_S = 1.0  # after this time the kernel has emptied the device's queue, so no old frame is sent
_REFUSED = (errno.EPERM, errno.EACCES, errno.EOPNOTSUPP)


def restart(interface: str) -> int:
    """Ask the kernel to restart the controller of `interface`; return its errno, 0 for success.

    EBUSY: the controller is not bus-off, or restarts by itself (`restart-ms`). EPERM: this process does not
    have CAP_NET_ADMIN.
    """
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
            sock.settimeout(_ANSWER_S)
            sock.send(restart_request(socket.if_nametoindex(interface)))
            number = result(sock.recv(4096))
    except TimeoutError:
        return errno.ETIMEDOUT
    except OSError as error:
        return error.errno or errno.ENODEV
    return errno.EPROTO if number is None else number


class Restarter:
    """The restarts of one interface. The pauses grow if the controller soon goes bus-off again."""

    def __init__(self, interface: str, loop: AbstractEventLoop, pauses: Backoff) -> None:
        self._interface, self._loop, self._pauses = interface, loop, pauses
        self._recovered_s = loop.time()
        self._timer: TimerHandle | None = None
        self._off = self._refused = False

    def bus_off(self) -> None:
        """Try to restart the controller after a bus-off, repeatedly, until `recovered` is called."""
        if self._off:
            return
        self._off = True
        if self._loop.time() - self._recovered_s > _PURGE_S + self._pauses.pause_s:
            self._pauses.reset()
        self._later()

    def recovered(self) -> None:
        self._off, self._recovered_s = False, self._loop.time()
        self.close()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _later(self) -> None:
        self._timer = self._loop.call_later(_PURGE_S + self._pauses.next_s(), self._try)

    def _try(self) -> None:
        self._timer = None
        self._loop.run_in_executor(None, restart, self._interface).add_done_callback(self._tried)

    def _tried(self, future: "Future[int]") -> None:
        error = None if future.cancelled() else future.exception()
        if future.cancelled() or not self._off:
            return
        number = future.result() if error is None else errno.EIO
        if number in _REFUSED and not self._refused:
            self._refused = True
            why, name = os.strerror(number), self._interface
            log.warning("%s: cannot restart after bus-off: %s: set restart-ms with ip link", name, why)
        if number not in _REFUSED:
            self._later()
