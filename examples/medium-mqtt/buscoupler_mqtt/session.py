"""A session: one connection to a broker, by paho-mqtt on the event loop, without a thread."""

import os
import ssl
from asyncio import AbstractEventLoop
from collections.abc import Callable
from contextlib import suppress
from socket import IPPROTO_TCP, TCP_NODELAY, socket
from typing import Any, NamedTuple, Protocol

from paho.mqtt.client import Client, MQTTMessage, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from bridges.media.device import cancel
from bus.errors import LinkError, why_of, words_of
from bus.machine.addresses import refuse_itself
from bus.machine.files import read_text
from bus.transports.options import Tls
from bus.transports.parting import part
from bus.transports.secure import context
from bus.wire.frame import DATA_BYTES_MAX
from buscoupler_mqtt.medium import Mqtt

PACKET_BYTES = 256 * 1024
"""The longest packet that the broker may send. A longer one ends the connection."""
WINDOW = 256
"""The most unacknowledged messages."""
ONLINE, OFFLINE = b"online", b"offline"
_ANSWER_S = 10.0  # for the broker to accept us and our subscriptions
_LOOK_S = 1.0  # between two looks whether it is time for a ping
_CALLS = 64  # of paho in one wake-up, so that other links get their turn
_SEEN_BYTES = DATA_BYTES_MAX + 1  # of a message: enough to see that it is too long
_HEAD_BYTES = 64  # of a PUBLISH, beside topic and data: more than enough
_PASSWORD_BYTES = 4096
_MARK = "buscoupler"  # key of the user property that names the publisher of a retained message
_GOODBYE = 0x04  # DISCONNECT, and publish the will
# DISCONNECT because of a packet: malformed, protocol error, topic name, too large, retain, QoS, format
_BLAMES = frozenset((0x81, 0x82, 0x90, 0x95, 0x99, 0x9A, 0x9B))


class BoundedClient(Client):
    """A client of paho with bounds on the length of a packet and on messages with QoS 2."""

    @property
    def half_received(self) -> int:
        """The number of unfinished messages with QoS 2, which we never subscribe to."""
        return len(self._in_messages)

    def _create_socket_connection(self) -> socket:
        """Dial as paho does. Raises `ConnectionRefusedError` for a socket that is connected to itself."""
        made: socket = super()._create_socket_connection()
        try:
            refuse_itself(made)
        except OSError:
            made.close()
            raise
        return made

    def _sock_recv(self, bufsize: int) -> bytes:
        if bufsize > PACKET_BYTES:
            raise ConnectionError("a packet is too long")
        return super()._sock_recv(bufsize)


class Received(NamedTuple):
    """A message of the broker. `own` says that this side published it, as a retained one."""

    topic: str
    data: bytes
    own: bool


class User(Protocol):
    """The user of a session."""

    def session_up(self, window: int) -> None:
        """Note that the broker has accepted us, and takes up to `window` unacknowledged messages."""

    def session_heard(self, messages: list[Received]) -> None:
        """Take messages of the broker."""

    def session_done(self, packet_id: int, refused: str) -> None:
        """Note that the broker has acknowledged a message, or refused it for a reason in words."""

    def session_ending(self) -> None:
        """Note that nothing more can be published. Earlier messages may follow, then `session_over`."""

    def session_over(self, why: str, blamed: bool) -> None:
        """Note that the connection has ended. `blamed`: the broker says that our packet was the cause."""


class _Named:
    """A TLS context with the expected name of the broker: paho can only expect its host."""

    check_hostname = True

    def __init__(self, made: ssl.SSLContext, name: str) -> None:
        self._made, self._name = made, name

    def wrap_socket(self, sock: Any, server_hostname: str, **settings: Any) -> ssl.SSLSocket:
        return self._made.wrap_socket(sock, server_hostname=self._name, **settings)


def connect(options: Mqtt) -> BoundedClient:
    """Connect to the broker and send CONNECT. Blocks for at most some seconds. Raises `OSError`."""
    host, port, secure = options.address
    client = BoundedClient(
        CallbackAPIVersion.VERSION2, options.client_id, protocol=MQTTv5, reconnect_on_failure=False
    )
    client.max_inflight_messages = 0  # we count ourselves
    if secure:
        tls = options.tls or Tls()
        made = context(f"mqtts://{options.device}", tls, listens=False)
        client.tls_set_context(_Named(made, tls.server_name or host))  # type: ignore[arg-type]
    if options.user:
        client.username_pw_set(options.user, _password(options))
    if options.will:
        client.will_set(_below(options, options.will), OFFLINE, qos=options.qos, retain=True)
    wishes = Properties(PacketTypes.CONNECT)
    wishes.MaximumPacketSize, wishes.SessionExpiryInterval = PACKET_BYTES, options.expiry_s
    client.connect(host, port, options.keepalive_s, clean_start=not options.client_id, properties=wishes)
    sock = client.socket()
    if sock is None:
        raise ConnectionResetError("the broker closed the connection")
    sock.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
    return client


def discard(client: Client) -> None:
    """Close the connection of a client that got no session."""
    sock = client.socket()
    if sock is not None:
        sock.close()


def _second(client: Client) -> socket | None:
    """Return a second socket on the connection of a client, because paho closes its own; None without one."""
    sock = client.socket()
    try:
        return None if sock is None else socket(fileno=os.dup(sock.fileno()))
    except OSError:
        return None


def _below(options: Mqtt, topic: str) -> str:
    return f"{options.prefix}/{topic}" if options.prefix else topic


def _password(options: Mqtt) -> str | None:
    """Return the password; None if there is no file. Raises `LinkError`."""
    if options.password_file is None:
        return None
    try:
        return read_text(options.password_file, _PASSWORD_BYTES).partition("\n")[0].strip()
    except (OSError, ValueError) as error:
        raise LinkError(f"{options.password_file}: cannot read the password: {why_of(error)}") from error


class Session:
    """A connection on which CONNECT was sent. `mark` names this side in its retained messages.

    `fresh` says that the bus may have no last values yet: the broker then sends the retained messages of all
    subscriptions, otherwise of new subscriptions only.
    """

    def __init__(
        self, client: BoundedClient, options: Mqtt, filters: list[str], mark: str, fresh: bool,
        user: User, loop: AbstractEventLoop,
    ) -> None:  # fmt: skip
        self._client, self._options, self._filters, self._mark = client, options, filters, mark
        self._fresh, self._user, self._loop = fresh, user, loop
        self._heard, self._done = list[Received](), list[tuple[int, str]]()
        self._handled = 0
        self._why, self._blamed, self._over = "", False, False
        self._window, self._room = 0, PACKET_BYTES
        self._answer = loop.call_later(_ANSWER_S, self._too_late)
        self._look = loop.call_later(_LOOK_S, self._on_look)

    def start(self) -> None:
        """Begin to read and to write."""
        client, sock = self._client, self._client.socket()
        client.on_connect, client.on_subscribe, client.on_message = (
            self._on_connect,
            self._on_subscribe,
            self._on_message,
        )
        client.on_publish, client.on_disconnect = self._on_publish, self._on_disconnect
        client.on_socket_close = lambda _, __, sock: self._loop.remove_reader(sock)
        client.on_socket_register_write = lambda _, __, sock: self._loop.add_writer(sock, self._on_writable)
        client.on_socket_unregister_write = lambda _, __, sock: self._loop.remove_writer(sock)
        self._loop.add_reader(sock, self._on_readable)
        if client.want_write():
            self._loop.add_writer(sock, self._on_writable)

    def publish(self, topic: str, data: bytes, retain: bool) -> int:
        """Publish, and return the packet id. Raises ValueError if the packet is too long for the broker."""
        if len(topic.encode()) + len(data) + _HEAD_BYTES > self._room:
            raise ValueError("oversize")
        marked = None
        if retain:
            marked = Properties(PacketTypes.PUBLISH)
            marked.UserProperty = (_MARK, self._mark)
        return self._client.publish(topic, data, self._options.qos, retain, marked).mid

    def close(self) -> None:
        """Disconnect so that the broker publishes the will, once it has all that was sent.

        The user gets no call. Idempotent.
        """
        if self._over:
            return
        self._over = True
        self._stop()
        second = _second(self._client)
        with suppress(Exception):
            self._client.disconnect(ReasonCode(PacketTypes.DISCONNECT, identifier=_GOODBYE))
            self._client.loop_write()
        discard(self._client)
        if second is not None:
            part(self._loop, second)

    def _stop(self) -> None:
        """Stop reading and writing."""
        client, sock = self._client, self._client.socket()
        cancel(self._answer, self._look)
        if sock is not None:
            self._loop.remove_reader(sock)
            self._loop.remove_writer(sock)
        client.on_disconnect = client.on_socket_close = None
        client.on_socket_register_write = client.on_socket_unregister_write = None

    def _end(self, why: str) -> None:
        if self._over:
            return
        self._user.session_ending()
        self._deliver()  # what came before the end
        self._over = True
        self._stop()
        discard(self._client)
        self._user.session_over(why, self._blamed)

    def _call(self, function: Callable[[], MQTTErrorCode]) -> None:
        """Call paho, and end the session if that ended it or raised."""
        try:
            function()
        except Exception as error:
            self._why = self._why or words_of(error)
        if self._client.half_received:
            self._why = self._why or "the broker sends QoS 2, but we subscribe with 1 at most"
        if self._why:
            self._end(self._why)

    def _on_readable(self) -> None:
        for _ in range(_CALLS):
            before = self._handled
            self._call(self._client.loop_read)
            if self._over or self._handled == before:
                break
        if not self._over:
            self._deliver()
        sock = self._client.socket()
        if not self._over and isinstance(sock, ssl.SSLSocket) and sock.pending():
            self._loop.call_soon(self._on_rest)  # the descriptor does not announce it

    def _on_rest(self) -> None:
        if not self._over:
            self._on_readable()

    def _deliver(self) -> None:
        """Give the user what paho reported. Never from a callback of paho, where paho must not be called."""
        done, self._done = self._done, []
        for packet_id, refused in done:
            self._user.session_done(packet_id, refused)
        heard, self._heard = self._heard, []
        if heard:
            self._user.session_heard(heard)

    def _on_writable(self) -> None:
        self._call(self._client.loop_write)
        if not self._over:
            self._deliver()

    def _on_look(self) -> None:
        self._look = self._loop.call_later(_LOOK_S, self._on_look)
        self._call(self._client.loop_misc)

    def _too_late(self) -> None:
        self._end(f"the broker has not answered for {_ANSWER_S:.0f} s")

    def _on_connect(self, _: Any, __: Any, flags: Any, reason: ReasonCode, told: Properties) -> None:
        self._handled += 1
        if reason.is_failure:
            self._why = f"the broker refuses us: {reason}"
        elif getattr(told, "MaximumQoS", 1) < self._options.qos:
            self._why = "the broker takes no message with qos 1"
        else:
            self._window = min(WINDOW, getattr(told, "ReceiveMaximum", WINDOW))
            self._room = getattr(told, "MaximumPacketSize", PACKET_BYTES)
            self._subscribe() if self._filters else self._up()

    def _subscribe(self) -> None:
        handling = (
            SubscribeOptions.RETAIN_SEND_ON_SUBSCRIBE
            if self._fresh
            else SubscribeOptions.RETAIN_SEND_IF_NEW_SUB
        )
        wishes = SubscribeOptions(self._options.qos, noLocal=True, retainHandling=handling)
        self._client.subscribe([(one, wishes) for one in self._filters])

    def _on_subscribe(self, _: Any, __: Any, ___: int, reasons: list[ReasonCode], ____: Any) -> None:
        self._handled += 1
        for one, reason in zip(self._filters, reasons, strict=False):
            if reason.is_failure:
                self._why = f"the broker refuses the subscription of {one}: {reason}"
                return
        self._up()

    def _up(self) -> None:
        cancel(self._answer)
        if self._options.will:
            topic = _below(self._options, self._options.will)
            self._client.publish(topic, ONLINE, qos=0, retain=True)  # so it takes no place in the window
        self._loop.call_soon(self._tell_up)  # paho must not be called from its own callback

    def _tell_up(self) -> None:
        if not self._over:
            self._user.session_up(self._window)

    def _on_message(self, _: Any, __: Any, message: MQTTMessage) -> None:
        self._handled += 1
        try:
            topic = message.topic
        except UnicodeDecodeError:
            topic = ""
        marks = getattr(message.properties, "UserProperty", []) if message.retain else []
        self._heard.append(
            Received(topic, bytes(message.payload[:_SEEN_BYTES]), (_MARK, self._mark) in marks)
        )

    def _on_publish(self, _: Any, __: Any, packet_id: int, reason: ReasonCode, ___: Any) -> None:
        self._handled += 1
        self._done.append((packet_id, str(reason) if reason.is_failure else ""))

    def _on_disconnect(self, _: Any, __: Any, flags: Any, reason: ReasonCode, ___: Any) -> None:
        if flags.is_disconnect_packet_from_server:
            self._blamed = reason.value in _BLAMES
            self._why = self._why or f"the broker has disconnected us: {reason}"
        elif not self._window:
            self._why = self._why or "the broker ended the connection without an answer: it must speak MQTT 5"
        else:
            self._why = self._why or "the connection was lost"
