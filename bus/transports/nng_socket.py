"""A BUS socket of NNG without its surprises; no other module knows pynng.

What NNG does by itself is bounded and said here: a receive limit, large queues (its own default of 16
messages loses silently), a back-off that is not 0, errors as `LinkError` with the URL. Messages are taken
with `nng_recvmsg`, since pynng's `recv` raises on an empty one.
"""

import atexit
import errno
import os
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakSet

import pynng
from pynng.sockaddr import In6Addr, InAddr

from bus.errors import ForkedError, LinkError
from bus.machine.addresses import let_others_have_it
from bus.machine.files import PEM_BYTES, read_bytes
from bus.text import MARK
from bus.transports.options import MESSAGE_BYTES, Tls
from bus.urls import split_url
from bus.wire.batch import Buffer
from bus.wire.pem import CERTIFICATE, KEY, fault

NOBODY = 0  # never the id of an NNG pipe
_ffi, _lib = pynng.ffi, pynng.lib
_NOT_CONNECTED = (_lib.NNG_ECLOSED, _lib.NNG_ESYSERR | errno.ENOTCONN, _lib.NNG_ESYSERR | errno.EBADF)
QUIET_S = 0.1
_HOSTLESS = ("inproc", "ipc", "unix", "abstract")
_SECURE = ("tls+tcp", "tls+tcp4", "tls+tcp6", "wss", "wss4", "wss6")


class _Process:
    """The use of NNG in this process. After a fork NNG ends the child as soon as it is called there."""

    def __init__(self) -> None:
        self.started = self.forked = False
        self.sockets = WeakSet[NngSocket]()

    def start(self) -> None:
        """Note that NNG is about to start its threads. Raises `ForkedError` if a parent process did."""
        self.check()
        if not self.started:
            self.started = True
            os.register_at_fork(after_in_child=self._disown)

    def check(self) -> None:
        """Raise `ForkedError` in the child of a fork."""
        if self.forked:
            raise ForkedError("Bus")

    def _disown(self) -> None:
        """Keep the child of a fork from calling NNG, also at its exit and from finalizers."""
        self.forked = True
        with suppress(AttributeError):
            atexit.unregister(pynng.nng._pynng_atexit)  # noqa: SLF001
        for socket in self.sockets:
            socket.disown()


class ClosedError(LinkError):
    """The socket has been closed on this side."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an NNG socket.

    `message_bytes`: a longer message closes the pipe it came from. `queue_messages` (at most 8192): per peer
    out, and per socket in; beyond it NNG drops and does not say so. A dial that failed is repeated after a
    random part of `retry_min_s`, which doubles up to `retry_max_s`.
    """

    message_bytes: int = MESSAGE_BYTES
    queue_messages: int = 8192
    retry_min_s: float = 0.1
    retry_max_s: float = 10.0

    def __post_init__(self) -> None:
        if not 1 <= self.queue_messages <= 8192:
            raise ValueError(f"queue_messages {self.queue_messages}: must be 1 to 8192")
        if self.message_bytes < 1 or not 0 < self.retry_min_s <= self.retry_max_s:
            raise ValueError(f"{self}: message_bytes at least 1, 0 < retry_min_s <= retry_max_s")


class NngSocket:
    """A BUS socket, raw or cooked. Receiving and sending never block.

    `on_join(peer, address)` and `on_leave(peer)` are called on threads of NNG. `peers` maps the id of
    each live peer to its address. `recv_fd` is readable while a message waits.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        raw: bool = False,
        on_join: Callable[[int, str], None] | None = None,
        on_leave: Callable[[int], None] | None = None,
    ) -> None:
        self.peers: dict[int, str] = {}
        self._dialers: dict[int, int] = {}
        self._on_join, self._on_leave = on_join, on_leave
        self._forgetful = self._fragile = False
        self._sent_at = 0.0
        _process.start()
        self._pynng = _open(limits or Limits(), raw)
        _process.sockets.add(self)
        self._id = self._pynng.socket
        self.recv_fd: int = self._pynng.recv_fd
        self._pynng.add_pre_pipe_connect_cb(_refuse_itself)
        self._pynng.add_post_pipe_connect_cb(self._joined)
        self._pynng.add_post_pipe_remove_cb(self._left)

    @property
    def dialed(self) -> int:
        """The number of dialed addresses that are connected now."""
        return len(set(self._dialers.copy().values()))

    def listen(self, url: str, tls: Tls | None = None) -> str:
        """Listen at a URL; return it with the port that was bound. Raises `LinkError`."""
        return _bound(url, self._start("listener", url, tls, _lib.NNG_TLS_MODE_SERVER, 0))

    def dial(self, url: str, tls: Tls | None = None) -> None:
        """Begin to dial a URL, again and again. Raises `LinkError` for an address that can never work."""
        self._start("dialer", url, tls, _lib.NNG_TLS_MODE_CLIENT, _lib.NNG_FLAG_NONBLOCK)

    def _start(self, kind: str, url: str, tls: Tls | None, tls_mode: int, flags: int) -> Any:
        """Make and start an endpoint: `kind` is `listener` or `dialer`, in the names of NNG's functions."""
        self.check()
        check_url(url)
        verbs = "create", "set_bool", "set_ptr", "start"
        create, set_bool, set_ptr, start = (getattr(_lib, f"nng_{kind}_{verb}") for verb in verbs)
        endpoint = _ffi.new(f"nng_{kind} *")
        _check(create(endpoint, self._id, url.encode()), url)
        set_bool(endpoint[0], b"tcp-keepalive", True)
        self._forgetful |= url.startswith(("tls+", "ws"))
        self._fragile |= url.startswith("ws")
        _secure(url, tls, tls_mode, set_ptr, endpoint[0])
        _check(start(endpoint[0], flags), url)
        return endpoint[0]

    def receive(self) -> tuple[bytes, int] | None:
        """Return the next message and its peer's id; None if none waits. Raises `ClosedError`."""
        if _process.forked:
            self.check()
        slot = _ffi.new("nng_msg **")
        error = _lib.nng_recvmsg(self._id, slot, _lib.NNG_FLAG_NONBLOCK)
        if error == _lib.NNG_EAGAIN:
            return None
        _check(error, "receive")
        message = slot[0]
        size = _lib.nng_msg_len(message)
        body = _ffi.buffer(_lib.nng_msg_body(message), size)[:] if size else b""
        peer = _lib.nng_pipe_id(_lib.nng_msg_get_pipe(message))
        _lib.nng_msg_free(message)
        return body, peer

    def send(self, message: Buffer, exclude: int = NOBODY) -> None:
        """Hand a message to every peer but `exclude` (raw sockets only). Raises `ClosedError`."""
        if _process.forked:
            self.check()
        if self._fragile:
            self._sent_at = time.monotonic()
        if exclude == NOBODY:
            data = _ffi.from_buffer(message)
            _check(_lib.nng_send(self._id, data, len(message), _lib.NNG_FLAG_NONBLOCK), "send")
        else:
            self._send_past(message, exclude)

    def _send_past(self, message: Buffer, exclude: int) -> None:
        slot = _ffi.new("nng_msg **")
        _check(_lib.nng_msg_alloc(slot, 0), "send")
        error = (
            _lib.nng_msg_append(slot[0], _ffi.from_buffer(message), len(message))
            or _lib.nng_msg_header_append_u32(slot[0], exclude)
            or _lib.nng_sendmsg(self._id, slot[0], _lib.NNG_FLAG_NONBLOCK)
        )
        if error:
            _lib.nng_msg_free(slot[0])
        _check(error, "send")

    @property
    def forked(self) -> bool:
        """Whether this is the child of a fork, where NNG cannot be called."""
        return _process.forked

    def check(self) -> None:
        """Raise `ForkedError` in the child of a fork."""
        _process.check()

    def disown(self) -> None:
        """Forget the socket of NNG without closing it, because it is that of the parent process."""
        self.peers.clear()
        vars(self._pynng).pop("_socket", None)

    def transmitted(self) -> dict[int, int]:
        """Return the messages written to each live peer, where the transport counts them (TCP, TLS, IPC)."""
        self.check()
        root = _ffi.new("nng_stat **")
        if _lib.nng_stats_get(root):
            return {}
        pipes = [_children(pipe) for name, pipe in _children(root[0]) if name == b"pipe"]
        numbers = [{name: _lib.nng_stat_value(stat) for name, stat in pipe} for pipe in pipes]
        _lib.nng_stats_free(root[0])
        counts = {pipe.get(b"id"): pipe.get(b"tx_msgs") for pipe in numbers}
        return {peer: count for peer in self.peers.copy() if (count := counts.get(peer))}

    def bury(self) -> None:
        """Close the connections that are gone although NNG keeps them.

        When the other side dies in the middle of a burst, NNG 1.11 misses about every third end of a
        tls+tcp connection and some of ws and wss (and a dialer then never dials again); only the lost
        remote address shows it. Call it once a second.
        """
        if not self._forgetful or _process.forked:
            return
        address = _ffi.new("nng_sockaddr *")
        for pipe in self._pynng.pipes:
            if _lib.nng_pipe_get_addr(pipe.pipe, b"remote-address", address) in _NOT_CONNECTED:
                self.drop_peer(pipe.id)

    def drop_peer(self, peer: int) -> None:
        """Close one peer's connection; no error if it is gone."""
        self.check()
        for pipe in self._pynng.pipes:
            if pipe.id == peer:
                self._hush()
                with suppress(pynng.NNGException):
                    pipe.close()

    def close(self) -> None:
        """Close the socket; messages that NNG still queues are lost. Idempotent.

        After a fork the socket is the parent's, and stays open there.
        """
        self._on_join = self._on_leave = None
        if _process.forked:
            return
        self._hush()
        self._pynng.close()
        self.peers.clear()

    def _hush(self) -> None:
        """Let a WebSocket finish what it writes, for at most `QUIET_S`.

        NNG 1.11 uses memory after it was freed, and aborts the process, about once in a hundred times
        that a ws or wss connection is closed here while it sends.
        """
        if self._fragile and self.peers:
            time.sleep(max(0.0, self._sent_at + QUIET_S - time.monotonic()))

    def _joined(self, pipe: Any) -> None:
        dialer = _lib.nng_dialer_id(_lib.nng_pipe_dialer(pipe.pipe))
        if dialer > 0:
            self._dialers[pipe.id] = dialer
        self.peers[pipe.id] = address = _address(pipe)
        if callback := self._on_join:
            callback(pipe.id, address)

    def _left(self, pipe: Any) -> None:
        self._dialers.pop(pipe.id, None)
        self.peers.pop(pipe.id, None)
        if callback := self._on_leave:
            callback(pipe.id)


_process = _Process()


def _open(limits: Limits, raw: bool) -> Any:
    try:
        return pynng.Bus0(
            opener=_lib.nng_bus0_open_raw if raw else _lib.nng_bus0_open,
            recv_max_size=limits.message_bytes,
            recv_buffer_size=limits.queue_messages,
            send_buffer_size=limits.queue_messages,
            reconnect_time_min=max(1, round(1000 * limits.retry_min_s)),
            reconnect_time_max=max(1, round(1000 * limits.retry_max_s)),
        )
    except pynng.NNGException as error:
        raise LinkError(f"{limits}: {error}") from None


def _check(error: int, what: str) -> None:
    if error == _lib.NNG_ECLOSED:
        raise ClosedError(f"{what}: the socket is closed")
    if error:
        raise LinkError(f"{what}: {_ffi.string(_lib.nng_strerror(error)).decode()}")


def check_url(url: str) -> None:
    """Raise `LinkError` for what is no address of a bus. NNG takes the port 65536 and retries it for ever."""
    try:
        split_url(url)
    except ValueError as error:
        medium = "" if "://" in url else "; a medium is joined by a bridge: dial the bus on its other side"
        raise LinkError(f"{url}: {error}{medium}") from None


def _bound(url: str, listener: Any) -> str:
    port = _ffi.new("int *")
    parts = urlsplit(url)
    if parts.scheme in _HOSTLESS or parts.port != 0:
        return url
    _check(_lib.nng_listener_get_int(listener, b"tcp-bound-port", port), url)
    return parts._replace(netloc=f"{parts.netloc.removesuffix(':0')}:{port[0]}").geturl()


def _refuse_itself(pipe: Any) -> None:
    """Close a connection of a socket to itself before any message: `bus.machine.addresses` says how it comes.

    NNG dials again later, and the program would have heard its own frames as those of a peer.
    """
    with suppress(pynng.NNGException):
        ends = pipe.local_address, pipe.remote_address
        if isinstance(ends[0], InAddr | In6Addr) and str(ends[0]) == str(ends[1]):
            let_others_have_it()
            pipe.close()


def _address(pipe: Any) -> str:
    try:
        return str(pipe.remote_address)
    except (pynng.NNGException, ValueError, TypeError, KeyError):
        return "unknown"


def _secure(url: str, tls: Tls | None, mode: int, set_option: Callable[..., int], endpoint: Any) -> None:
    """Give an endpoint of a TLS transport its configuration; the others need none."""
    parts = urlsplit(url)
    if parts.scheme not in _SECURE:
        return
    slot = _ffi.new("nng_tls_config **")
    _check(_lib.nng_tls_config_alloc(slot, mode), url)
    try:
        _configure(slot[0], tls or Tls(), mode, parts.hostname or "", url)
        _check(set_option(endpoint, b"tls-config", slot[0]), url)
    except (OSError, ValueError) as error:
        raise error if isinstance(error, LinkError) else LinkError(f"{url}: {error}") from None
    finally:
        _lib.nng_tls_config_free(slot[0])


def _configure(config: Any, tls: Tls, mode: int, host: str, url: str) -> None:
    dials = mode == _lib.NNG_TLS_MODE_CLIENT
    if not dials and not tls.cert_file:
        raise LinkError(f"{url}: a TLS listener needs cert_file")
    if tls.cert_file:
        key = _pem(tls.key_file or tls.cert_file, KEY)
        own = _lib.nng_tls_config_own_cert(config, _pem(tls.cert_file), key, _ffi.NULL)
        _check(own, f"{url}: {tls.cert_file}")
    if dials or tls.require_peer_cert:
        ca_file = tls.ca_file or ssl.get_default_verify_paths().cafile or ""
        chain = _lib.nng_tls_config_ca_chain(config, _pem(ca_file), _ffi.NULL)
        _check(chain, f"{url}: {ca_file}")
        _check(_lib.nng_tls_config_auth_mode(config, _lib.NNG_TLS_AUTH_MODE_REQUIRED), url)
    if dials:
        # Without a name the TLS engine refuses every certificate, even the right one.
        _check(_lib.nng_tls_config_server_name(config, (tls.server_name or host).encode()), url)


def _pem(path: str, holds: str = CERTIFICATE) -> bytes:
    """Return the bytes of a file of certificates, without a mark of the byte order. Raises `OSError`, and
    ValueError if it was not written to its end."""
    data = read_bytes(path, PEM_BYTES).removeprefix(MARK)
    if found := fault(data, holds):
        raise ValueError(f"{path} {found}")
    return data


def _children(stat: Any) -> list[tuple[bytes, Any]]:
    """Return the statistics below one of NNG's, with their names."""
    found, child = [], _lib.nng_stat_child(stat)
    while child:
        found.append((_ffi.string(_lib.nng_stat_name(child)), child))
        child = _lib.nng_stat_next(child)
    return found
