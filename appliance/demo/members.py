"""The members of the demo: sensors on a line and on CAN, applications on the buses, foreign listeners.

Every frame is `(demo, sender, reading)` with the value as text, without its unit. Each member counts the
frames that it receives, by sender: frames of its own would be counted too, and show as a fault.
"""

import asyncio
import shutil
from collections import Counter
from collections.abc import Iterator

from bus.client.socket import Bus
from bus.errors import FrameError
from bus.hub import Hub, Link, Pipe
from bus.machine.parents import ending_with_us
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.frame import PUB, frame_bytes, pack, unpack
from bus.wire.pattern import Pattern, token

DEMO = token("demo")
GREETING = "hello"


UNBUFFERED = ("stdbuf", "-o0")  # nngcat buffers what it writes to a pipe, which delays it
FOREIGN = {
    "nanocat": ("nanocat", "--bus", "--raw", "--connect"),
    "nngcat": ("nngcat", "--bus0", "--raw", "--dial"),
}


class Member:
    """A member of the demo and its counts. `last` is the newest value that it sent, as text."""

    def __init__(self, name: str, segment: str, readings: Iterator[tuple[str, str]] | None) -> None:
        self.name, self.segment = name, segment
        self.readings = readings
        self.sent = self.greetings = 0
        self.received: Counter[int] = Counter()
        self.greeted: set[int] = set()
        self.last = ""

    @property
    def token(self) -> int:
        return token(self.name)

    def take(self, message: bytes) -> None:
        """Count a message that this member received."""
        try:
            frame = unpack(message)
        except FrameError:
            return
        if len(frame.tokens) != 3 or frame.tokens[0] != DEMO:
            return
        if frame.tokens[2] == token(GREETING):
            self.greeted.add(frame.tokens[1])
        else:
            self.received[frame.tokens[1]] += 1

    def frame(self) -> bytes:
        """Return the next reading as a frame, and count it as sent."""
        assert self.readings is not None
        name, value = next(self.readings)
        self.sent += 1
        self.last = f"{name} {value}"
        return pack(PUB, Pattern(DEMO, self.token, name), value.partition(" ")[0].encode())

    def greeting(self) -> bytes:
        """Return a frame that no count includes: it shows which members are connected by now."""
        self.greetings += 1
        return pack(PUB, Pattern(DEMO, self.token, GREETING))

    def say(self, message: bytes) -> None:
        """Send a message on the member's segment. A foreign listener sends nothing."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class LinkMember(Member):
    """A member behind a link, whose pipe is the only one on the member's own hub."""

    def __init__(self, name: str, segment: str, link: Link, readings: Iterator[tuple[str, str]]) -> None:
        super().__init__(name, segment, readings)
        self._hub, self._link = Hub(name), link
        self._hub.tap(self._hear)

    async def start(self) -> None:
        self._link.open(self._hub, asyncio.get_running_loop())

    def say(self, message: bytes) -> None:
        self._hub.publish(from_payloads([message]))

    def _hear(self, batch: Batch, origin: Pipe | None) -> None:
        """Take messages that came from the link; messages that this member says have no origin."""
        for message in payloads(batch) if origin else ():
            self.take(message)

    async def stop(self) -> None:
        self._link.close()


class Application(Member):
    """A member on a bus, which uses the socket as any application does."""

    def __init__(self, name: str, segment: str, url: str, readings: Iterator[tuple[str, str]]) -> None:
        super().__init__(name, segment, readings)
        self._url = url
        self._bus: Bus | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._bus = Bus(dial=self._url)
        self._task = asyncio.create_task(self._listen(self._bus))

    async def _listen(self, bus: Bus) -> None:
        while True:
            self.take(await bus.arecv_bytes())

    def say(self, message: bytes) -> None:
        if self._bus is not None:
            self._bus.send_bytes(message)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._bus is not None:
            await self._bus.aclose()


class Foreign(Member):
    """A member that runs a program of another project.

    It prints raw messages, which are cut into frames here.
    """

    def __init__(self, program: str, segment: str, url: str) -> None:
        super().__init__(program, segment, None)
        self._command = (*UNBUFFERED, *FOREIGN[program], url)
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None

    @staticmethod
    def installed() -> list[str]:
        return [program for program in FOREIGN if shutil.which(program)]

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C must not end it before the count
            preexec_fn=ending_with_us(),
        )
        assert self._process.stdout is not None
        self._task = asyncio.create_task(self._read(self._process.stdout))

    async def _read(self, stream: asyncio.StreamReader) -> None:
        buffer = b""
        while more := await stream.read(65536):
            buffer += more
            while 0 < (size := frame_bytes(buffer)) <= len(buffer):
                self.take(buffer[:size])
                buffer = buffer[size:]

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        if self._task is not None:
            await self._task
