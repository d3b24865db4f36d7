"""The pipe of a side at a broker: it lasts as long as its link is open, also while the broker is away."""

from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Any

from bridges.media.shedding import Shed
from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.frame import FRAME_BYTES_MIN
from bus.wire.pattern import Pattern
from buscoupler_mqtt.medium import Mqtt
from buscoupler_mqtt.memory import Memory
from buscoupler_mqtt.outbox import Outbox
from buscoupler_mqtt.session import Received, Session
from buscoupler_mqtt.spooled import Spooled
from buscoupler_mqtt.topics import Topics, data_of


class MqttPipe(Pipe):
    """A broker as one peer of the hub. `files` is the ledger of the spool.

    A message counts as sent when the broker has it, or with a spool when it is in a file.
    """

    def __init__(
        self, name: str, hub: Hub, loop: AbstractEventLoop, options: Mqtt, topics: Topics, shed: Shed
    ) -> None:
        self.name = self.link = name
        self.stats, self.files = Stats(), Stats()
        self.topics = topics
        self._hub = hub
        self._session: Session | None = None
        self._closed = False
        self._retained = [
            b"".join(token.to_bytes(4, "big") for token in Pattern(*one)) for one in options.retain
        ]
        self.out: Outbox[Any] = (
            Spooled(self.stats, self.files, shed, loop, self._publish, self._let_go)
            if options.spool
            else Memory(self.stats, shed, loop, self._publish)
        )

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        if self._closed:
            return self.stats.drop("closed", batch.count)
        fit = []
        for message in payloads(batch):
            try:
                self.topics.topic(message)
            except ValueError as error:
                self.stats.drop(str(error))
            else:
                fit.append(message)
        if fit:
            self.out.put(fit)
        return None

    def _publish(self, message: bytes) -> int:
        assert self._session is not None
        tokens = message[FRAME_BYTES_MIN : FRAME_BYTES_MIN + 4 * message[1]]
        retain = any(tokens.startswith(one) for one in self._retained)
        return self._session.publish(self.topics.topic(message), data_of(message), retain)

    def up(self, session: Session, window: int) -> None:
        """Begin to publish in a session, with at most `window` messages unacknowledged."""
        self._session = session
        self.out.up(window)

    def down(self, blamed: bool) -> None:
        """Note that the session has ended. `blamed`: the broker says that a packet of ours was the cause."""
        if self._session is not None:
            self.out.down(blamed)
            self._session = None

    def hear(self, messages: list[Received]) -> None:
        """Publish the broker's messages on the hub. Count those that fit no frame."""
        frames = list[bytes]()
        for one in messages:
            try:
                if one.own:
                    raise ValueError("echo")
                frames.append(self.topics.frame(one.topic, one.data))
            except ValueError as error:
                self.stats.reject(str(error))
        if frames and not self._closed:
            self._hub.publish(from_payloads(frames), self)

    def purge(self, reason: str) -> list[bytes]:
        """Drop the messages in memory and return them. Published ones and those in files still leave."""
        return self.out.purge(reason)

    def start(self, on_close: Callable[[], None]) -> None:
        """Attach to the hub. `on_close` is called once when the pipe is closed."""
        self._on_close = on_close
        if isinstance(self.out, Spooled):
            self._hub.keep(f"{self.link} spool", self.files)
        self._hub.attach(self)

    def _let_go(self) -> None:
        self._hub.fold(f"{self.link} spool", self.files)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._hub.detach(self)
        self._on_close()
        self.down(False)
        self.out.close()
