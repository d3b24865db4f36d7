"""The gateways of the tunnel over CAN as processes, and the account of each frame."""

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from bisect import bisect
from collections import Counter
from math import inf
from pathlib import Path
from typing import Any, Protocol

from appliance.status.client import ANSWER_S, ask, status_socket
from benchmarks.processes import processor_s
from bridges.media.can.socketcan import pack_frame, unpack_frame
from tests.helpers.ports import free_port

TOPOLOGY = """
name: tunnel
gateways: {{a: {{address: 127.0.0.1}}, b: {{address: 127.0.0.1}}, far: {{address: 127.0.0.1}}}}
brokers: {{x: {{on: far, listen: "tcp://127.0.0.1:{0}"{4}}}}}
buses: {{road: {{on: far, listen: {{url: "tcp://127.0.0.1:{1}", trunk: true}}}}}}
bridges:
  near:
    on: [a, b]
    join:
      - bus: road
        trunk: true
      - can: {{channel: {2}, age_ms: 5000, queue_bytes: 4194304}}
        protocol: {{raw: {{root: car, receive: "0x000-0x3ff", send: "0x400-0x7ff"}}}}
  end:
    on: far
    join:
      - bus: road
        trunk: true
      - can: {{channel: {3}, age_ms: 5000, queue_bytes: 4194304}}
        protocol: {{raw: {{root: car, receive: "0x400-0x7ff", send: "0x000-0x3ff"}}}}
"""
_ABSENT_S = 2.0  # of a killed gateway
_EARLY_S = 0.2  # before a kill: what the gateway that is not ready heard by then, it does not trust (`blind`)
Spans = list[tuple[float, float]]
"""Times, from and to."""


class Flow:
    """Frames in one direction, numbered, under 97 identifiers from `first` on."""

    def __init__(self, first: int) -> None:
        self._first = first
        self.begin()

    def begin(self) -> None:
        """Count from now on."""
        self.sent = self.late = self.echoed = self._next = 0
        self.counts = Counter[int]()
        self._batches: list[tuple[float, int]] = []

    def frame(self, now_s: float = 0.0) -> bytes:
        """Return the next frame, which is sent at a time in seconds."""
        raw = pack_frame((self._first + self.sent % 97, self.sent.to_bytes(8, "big"), 0))
        self.say(now_s)
        return raw

    def say(self, now_s: float) -> None:
        """Note that the next frame was sent at a time in seconds."""
        if not self._batches or now_s > self._batches[-1][0]:
            self._batches.append((now_s, self.sent))
        self.sent += 1

    def hear(self, raw: bytes) -> None:
        """Note a frame that a gateway has sent; one of the other direction is an echo."""
        frame = unpack_frame(raw)
        if frame is None or not self._first <= frame[0] < self._first + 0x400:
            self.echoed += 1
            return
        self.take(int.from_bytes(frame[1], "big"))

    def take(self, number: int) -> None:
        """Note that a frame came out."""
        self.counts[number] += 1
        self.late += number < self._next
        self._next = max(self._next, number + 1)

    def lost(self) -> list[float]:
        """Return when each frame was sent that nobody heard."""
        starts = [number for _, number in self._batches]
        missing = (number for number in range(self.sent) if number not in self.counts)
        return [self._batches[bisect(starts, number) - 1][0] for number in missing]

    @property
    def rate(self) -> float:
        """The frames a second that were sent, 0 for less than two moments of sending."""
        if len(self._batches) < 2:
            return 0.0
        return self._batches[-1][1] / (self._batches[-1][0] - self._batches[0][0])

    @property
    def doubled(self) -> int:
        return sum(self.counts.values()) - len(self.counts)

    @property
    def is_clean(self) -> bool:
        """Whether nothing was doubled, out of order or echoed."""
        return not self.late and not self.echoed and not self.doubled

    def words(self, unheard: Spans) -> str:
        """Return the counts; those lost in the times of `unheard` apart."""
        lost = self.lost()
        alone = sum(1 for at in lost if is_in(unheard, at))
        counts = f"{self.sent} sent, {len(lost) - alone} lost, {alone} unheard, {self.doubled} doubled"
        return f"{counts}, {self.late - self.doubled} out of order, {self.echoed} echoed"


def _words(row: dict[str, Any]) -> str:
    counts = {"received": row["received"], "sent": row["sent"], "queued": row["queued"]}
    counts |= {f"rejected {reason}": count for reason, count in row["rejected"].items()}
    counts |= {f"dropped {reason}": count for reason, count in row["dropped"].items()}
    return ", ".join(f"{what} {count}" for what, count in counts.items() if count)


def used(now_s: dict[tuple[str, int], float], before_s: dict[tuple[str, int], float], frames: int) -> str:
    """Return the processor's time a frame of each gateway that ran all the time, by two looks at it."""
    ran = [(one[0], at_s - before_s[one]) for one, at_s in now_s.items() if one in before_s]
    each = ", ".join(f"{name} {passed_s / max(1, frames) * 1e6:.1f}" for name, passed_s in ran)
    return f"processor a frame, in us: {each}"


def is_in(spans: Spans, at: float) -> bool:
    """Tell whether a time is in one of these spans."""
    return any(first <= at <= last for first, last in spans)


class Started(Protocol):
    """A process of a gateway; `returncode` is None while it runs."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    def kill(self) -> None: ...
    async def wait(self) -> object: ...


class Gateways(ABC):
    """Three gateways, each a process: two that stand in for each other, and the far one.

    `unheard` has the times, on the clock of the machine, when one was killed and the other not ready yet; a
    gateway is asked every `ask_s` seconds whether it is, and has `answer_s` to say so. The broker has the
    settings `broker`.
    """

    ask_s, answer_s = 0.02, ANSWER_S
    broker = ""

    def __init__(self, place: Path, near: str, away: str) -> None:
        self.place, self.file = place, place / "tunnel.yaml"
        self.file.write_text(TOPOLOGY.format(free_port(), free_port(), near, away, self.broker))
        self.processes: dict[str, Started] = {}
        self.takeovers = 0
        self.accounts: list[str] = []
        self.unheard: Spans = []
        self.set_up: set[str] = set()
        self._watching = set[asyncio.Task[None]]()

    @abstractmethod
    async def run(self, *words: str) -> Started:
        """Start the program with these words."""

    async def start(self, *names: str) -> None:
        """Run gateways."""
        for name in names:
            words = str(self.file), "--gateway", name, "--run-directory", str(self._sockets(name))
            self.processes[name] = made = await self.run("run", *words)
            watch = asyncio.ensure_future(self._watch(name, made))
            self._watching.add(watch)
            watch.add_done_callback(self._watching.discard)

    def _sockets(self, gateway: str) -> Path:
        return self.place / f"run-{gateway}"

    async def status(self, name: str) -> dict[str, Any]:
        """Return the status of a gateway; nothing if there is none."""
        with contextlib.suppress(OSError, ValueError):
            status = await asyncio.to_thread(ask, self._sockets(name) / status_socket(()), self.answer_s)
            if status["pid"] == self.processes[name].pid:
                return status
        return {}

    async def candidate(self, name: str) -> dict[str, Any]:
        """Return what the status of a gateway says of its part in the failover; nothing if there is none."""
        return next(iter((await self.status(name)).get("candidates", ())), {})

    async def account(self, name: str) -> str:
        """Return what a gateway has counted of the frames that went no further, by link and reason."""
        status = await self.status(name)
        rows = [row for hub in status.get("hubs", ()) for row in hub["links"]]
        lines = [f"  {row['name']}: {_words(row)}" for row in rows if row["rejected"] or row["dropped"]]
        lines += [f"  window: {one['window']}" for one in status.get("candidates", ())]
        return "\n".join([f"{name} counted:", *lines])

    async def _watch(self, name: str, process: Started) -> None:
        """Note when a gateway is ready to take over."""
        while process.returncode is None and name not in self.set_up and name != "far":
            if (await self.candidate(name)).get("ready"):
                self.set_up.add(name)
                if self.unheard and self.unheard[-1][1] == inf:  # somebody listens from now on
                    self.unheard[-1] = self.unheard[-1][0], time.monotonic()
            await asyncio.sleep(self.ask_s)

    async def kill(self, every_s: float) -> None:
        """Kill the gateway that forwards, again and again, and start it anew."""
        while every_s:
            await asyncio.sleep(every_s - _ABSENT_S)
            roles = {name: (await self.candidate(name)).get("role") for name in ("a", "b")}
            name = next((one for one, role in roles.items() if role in ("active", "orphan")), "a")
            self.set_up.discard(name)
            if not self.set_up:
                self.unheard.append((time.monotonic() - _EARLY_S, inf))
            self.accounts.append(await self.account(name))
            self.processes[name].kill()
            await self.processes[name].wait()
            self.takeovers += 1
            print(f"takeover {self.takeovers}: {name} was killed", flush=True)
            await asyncio.sleep(_ABSENT_S)
            await self.start(name)

    def used_s(self) -> dict[tuple[str, int], float]:
        """Return the processor's time that each process of a gateway has used, in seconds."""
        alive = [(name, one.pid) for name, one in self.processes.items() if one.returncode is None]
        return {(name, pid): processor_s(pid) for name, pid in alive}

    def close(self) -> None:
        """End all of them."""
        for watch in self._watching:
            watch.cancel()
        for one in self.processes.values():
            if one.returncode is None:
                one.kill()
