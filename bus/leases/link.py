"""A candidate's connection to one broker: claims out, grants in."""

import asyncio
import contextlib
import logging
import os
import random
import socket
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable

from bus.announcements import RELAYED, Hear, relayed, said
from bus.backoff import Attempts, Backoff
from bus.errors import FrameError
from bus.keys import Keyring
from bus.leases.candidate import Candidate, Reach
from bus.leases.relay import read_note
from bus.leases.signed import NONCE_BYTES, Answer, Session, pack_ask, unpack_answer
from bus.leases.wire import CLAIM_TYPE, GRANT_TYPE, pack_claim, unpack_grant
from bus.serving.connection import Connection
from bus.tmq.wire import HELLO, HELLO_MASK, RELAYS, Address, Cutter, Hello, data_of, pack_hello, unpack_hello
from bus.transports.redialling import Redialling
from bus.transports.secure import Security
from bus.transports.sockets import CLOSED_HERE, connect_by_name
from bus.vacancy import NO_PEER

log = logging.getLogger("buscoupler.failover")

RETRY_MAX_S = 1.0
SILENT_LEASES = 4  # after which a broker that does not answer is dialled again
_SILENCE_MS = 60_000  # the broker notices silence by the lease, not by this
_UNSIGNED = {
    "must be signed": "it takes only signed claims: give this gateway its keys, or a certificate for TLS",
    "no key": "it has no keys, and cannot sign its grants: give it the keys of this gateway",
}


class BrokerLink:
    """A candidate's connection to one broker, dialled again at once when it ends, then with growing pauses.

    `number` is the broker's position in the candidate's list. `judge()` is called after each event that may
    have changed the candidate's state. `hear` gets announcements of other gateways that the broker relays.
    """

    def __init__(
        self,
        candidate: Candidate,
        number: int,
        address: Address,
        judge: Callable[[], object],
        jitter: Callable[[float, float], float] = random.uniform,
        hear: Hear = read_note,
    ) -> None:
        self._candidate, self._number, self._address, self._judge = candidate, number, address, judge
        beat_s = candidate.heartbeat_ms / 1000
        self._attempts = Attempts(beat_s, RETRY_MAX_S, jitter)
        self._hurried = Backoff(beat_s / 10, beat_s / 10, jitter)
        self._connection: Connection | None = None
        self._task: Task[None] | None = None
        self._security: Security | None = None
        self._keys: Keyring | None = None
        self._nonce = b""
        self._session: Session | None = None
        self._warned: set[str] = set()
        self._hear = hear
        self._relays: bool | None = None  # None until the broker has greeted

    def keep_pace(self) -> None:
        """Dial at the pace that follows from the heartbeat of the candidate now."""
        beat_s = self._candidate.heartbeat_ms / 1000
        self._attempts.revise(beat_s, RETRY_MAX_S)
        self._hurried.revise(beat_s / 10, beat_s / 10)

    def sign(self, keys: Keyring | None) -> None:
        """Sign claims with these keys, and accept only signed grants; with None, do neither."""
        other, self._keys = (keys is None) != (self._keys is None), keys
        if self._session is not None and keys is not None:
            self._session.revise(keys)
        elif other and self._connection is not None:
            self._connection.close("other keys")

    def secure(self, security: Security | None) -> None:
        """Dial with this TLS from the next time on, whose certificates are loaded; with None, without TLS."""
        other, self._security = (security is None) != (self._security is None), security
        if other and self._connection is not None:
            self._connection.close("other security")

    def open(self, loop: AbstractEventLoop) -> None:
        """Dial the broker, and stay connected."""
        self._loop = loop
        redialling = Redialling(self._connect, self._serve, self._not_reached, self._after)
        self._task = loop.create_task(redialling.run(), name=f"lease {self._address}")

    async def _connect(self) -> socket.socket:
        turn, limit_s = self._attempts.turn, self._candidate.lease_s
        return (await connect_by_name(self._loop, *self._address, turn, socket.AF_INET, limit_s))[0]

    def _not_reached(self, error: OSError | UnicodeError) -> None:
        reach: Reach = "refused" if isinstance(error, ConnectionRefusedError) else "unreachable"
        self._candidate.reached(self._number, reach, self._loop.time())

    def _after(self, connected: bool) -> float:
        self._judge_safely()
        return self._pause_s(connected)

    def _judge_safely(self) -> None:
        """Call `judge`, and log an error of it: the error must not end this connection for ever."""
        try:
            self._judge()
        except Exception:
            log.exception("bridge %s: after trouble with %s:%d", self._candidate.bridge, *self._address)

    def _pause_s(self, connected: bool) -> float:
        """Return the next pause: a holder must be the first at a broker that is back, above all in doubt."""
        if connected or self._candidate.holding:
            self._attempts.reset()
        if connected:
            return 0.0
        return self._attempts.after(False, self._hurried if self._candidate.state == "doubt" else None)

    async def _serve(self, sock: socket.socket) -> bool:
        """Claim the lease on a connection until it ends. Return whether the broker said anything."""
        gone = asyncio.Event()

        def on_closed(connection: Connection) -> None:
            self._connection = None
            if self._security is not None and not connection.objects and self._task is not None:
                self._warn(connection.words)
            self._candidate.reached(self._number, "unreachable", self._loop.time())
            gone.set()
            self._judge_safely()

        name = f"{self._address[0]}:{self._address[1]}"
        end = sock if self._security is None else self._security.secure(sock)
        made = self._connection = Connection(self._loop, end, name, Cutter(), self._on_frames, on_closed)
        made.on_ready(self._begin)
        try:
            await gone.wait()
        finally:
            made.close()
        return made.objects > 0

    def _begin(self, connection: Connection) -> None:
        """Greet the broker, and claim the lease, or ask for the nonce with which claims are signed."""
        self._candidate.reached(self._number, "up", self._loop.time())  # the next line may close it
        connection.say(pack_hello(Hello(random.SystemRandom().getrandbits(32), _SILENCE_MS)))
        self._session = self._relays = None
        if self._keys is None:
            self.claim()
        else:
            self._nonce = os.urandom(NONCE_BYTES)
            connection.say(pack_ask(self._nonce))

    def claim(self, resign: bool = False) -> None:
        """Send a heartbeat, if a connection is up and has sent the last heartbeat."""
        connection = self._connection
        if connection is None or connection.closed:
            return
        if self._loop.time() - connection.heard_s > SILENT_LEASES * self._candidate.lease_s:
            # TCP retransmits at ever longer intervals: after a long outage, a new connection is faster.
            if self._keys is not None and connection.ready and not self._was_granted():
                self._warn("it does not answer to claims that are signed with the keys of this gateway")
            return connection.close("no answer")
        if not connection.ready or connection.queued_bytes:
            return
        if self._keys is not None and self._session is None:
            return
        claim = self._candidate.claim(self._number, self._loop.time(), resign)
        with contextlib.suppress(FrameError):
            frame = pack_claim(claim)
            connection.say(frame if self._session is None else self._session.seal(frame))

    def _was_granted(self) -> bool:
        """Return whether a signed grant came on this connection, so that its silence is not due to keys."""
        return self._session is not None and self._session.heard > 0

    def _on_frames(self, _: Connection, frames: list[bytes]) -> None:
        for frame in frames:
            answer = unpack_answer(frame)
            if answer is not None:
                self._answered(*answer)
            elif frame[0] == GRANT_TYPE:
                self._granted(frame)
            elif frame[0] == RELAYED:
                self._announced(frame)
            elif frame[0] & HELLO_MASK == HELLO:
                hello = unpack_hello(data_of(frame))
                self._relays = hello is not None and bool(hello.flags & RELAYS)
        self._judge_safely()

    def _announced(self, frame: bytes) -> None:
        reason = self._hear(said(frame))
        if isinstance(reason, str) and reason:
            self._warn(f"announcements of gateways that come by it are refused: {reason}")

    def announce(self, frame: bytes) -> str:
        """Send an announcement of this gateway. Return "", or the reason why it is not sent."""
        connection, packet = self._connection, relayed(frame)
        if connection is None or connection.deaf or not connection.ready or self._relays is None:
            return NO_PEER
        if not self._relays:
            return "not relayed"
        if not connection.has_room(len(packet)):
            return "queue full"
        return "" if connection.send(packet, 0) else "peer gone"

    def _answered(self, answer: Answer, nonce: bytes) -> None:
        """Handle the broker's answer about signing: with its nonce, claims can be signed from now on."""
        if answer != "nonce":
            self._warn(_UNSIGNED[answer])
        elif self._keys is not None and self._session is None:
            self._session = Session(self._keys, self._nonce, nonce, CLAIM_TYPE)
            self.claim()

    def _granted(self, frame: bytes) -> None:
        if self._keys is not None:
            nothing = b"", "unsigned"
            frame, fault = nothing if self._session is None else self._session.open(frame)
            if fault:
                return self._warn(f"its grants are refused: {fault}")
        grant = unpack_grant(frame)
        if grant is not None:
            self._warned.clear()
            self._candidate.heard(self._number, grant, self._loop.time())
        return None

    def _warn(self, why: str) -> None:
        """Log what is wrong with this broker, once until it grants again."""
        if why not in self._warned:
            self._warned.add(why)
            broker = "broker {}:{}".format(*self._address)
            cause = f"{broker}: {why}"
            log.warning("bridge %s: %s: %s", self._candidate.bridge, broker, why, extra={"cause": cause})

    def close(self) -> None:
        """Disconnect. Idempotent."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self._connection is not None:
            self._connection.close(CLOSED_HERE)
