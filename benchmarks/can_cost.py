"""`python -m benchmarks.can_cost`: the processor time of a CAN frame through a gateway, beside can_bridge.

Frames come one by one, as a full bus brings them, on sockets that carry `struct can_frame`; a gateway, in a
process of its own, bridges them to a second pair, as raw frames; then python-can's `can_bridge` does so. Only
the process of the gateway counts. What it sends comes back to it, as the kernel does it. Run it by
`chrt -f 10`: on a busy machine all else is noise.
"""

import asyncio
import contextlib
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple

from benchmarks.can_pairs import Bus
from benchmarks.command import Command, run_as_command
from bridges.items import FD, SWITCH
from bridges.media.can.codec import frame_seconds
from bridges.media.can.medium import GATHER_MS
from bridges.media.can.socketcan import pack_frame
from bridges.packed import FD_BYTES
from bus.machine.wake_hook import WakefulLoop
from tests.rigs.can_packets import MARK, MARKED, install, roomy

_WARM_S = 0.5
_IDLE = 10  # looks that bring nothing, before no more is to come
_STAMP = Struct("@qq").pack(1, 1)
_NANOSECONDS = 35  # SO_TIMESTAMPNS


class Load(NamedTuple):
    """A full bus: bits a second, and the bytes of data in each frame, of an 11-bit identifier."""

    name: str
    bitrate: int
    size: int
    data_bitrate: int | None = None

    @property
    def rate(self) -> float:
        """Frames a second."""
        return 1 / frame_seconds(self.size, self.bitrate, self.data_bitrate, False)

    @property
    def frame(self) -> bytes:
        marks = FD | SWITCH if self.data_bitrate else 0
        return pack_frame((0x123, bytes(range(self.size)), marks))


LOADS = (
    *(Load(f"classic-500k-{size}", 500_000, size) for size in (0, 4, 8)),
    *(Load(f"classic-1M-{size}", 1_000_000, size) for size in (0, 4, 8)),
    *(Load(f"fd-1M-5M-{size}", 1_000_000, size, 5_000_000) for size in (8, 64)),
)


class _Marked:
    """A socket pair's end as a raw CAN socket for python-can: `recvmsg` tells when frames came."""

    def __init__(self, descriptor: int) -> None:
        made = socket.socket(fileno=descriptor)
        self._receive, self._made = made.recvmsg, made
        self.fileno, self.close, self.send = made.fileno, made.close, made.send
        self._notes = [(socket.SOL_SOCKET, _NANOSECONDS, _STAMP)]

    def recvmsg(self, size: int, room: int, flags: int = 0) -> tuple[bytes, list[Any], int, None]:
        return self._receive(size)[0], self._notes, 0, None

    def setsockopt(self, *_: Any) -> None:
        """Take any option of a CAN socket."""

    def getsockopt(self, *_: Any) -> int:
        return 0


def serve(descriptors: list[int], gather_ms: float) -> None:
    """Be the gateway between two sockets, until it is killed."""
    from bridges.bridge import Bridge
    from bridges.media.can.medium import Can
    from bridges.protocols.raw.protocol import Raw

    install(lambda channel, **_: Bus(socket.socket(fileno=int(channel))))

    async def run() -> None:
        loop, bridge = asyncio.get_running_loop(), Bridge("cost", 1)
        links: list[Any] = []
        for number in descriptors:
            medium = Can(channel=number, fd=True, queue_bytes=1 << 22, age_ms=60_000, gather_ms=gather_ms)
            links.append(medium.speaking(Raw(root=("car",), send=("all",))))
            links[-1].open(bridge.side(f"can{number}"), loop)
        await asyncio.Event().wait()

    with asyncio.Runner(loop_factory=WakefulLoop) as runner:
        runner.run(run())


def serve_python_can(descriptors: list[int], _: float) -> None:
    """Be python-can's `can_bridge` between two sockets, until it is killed."""
    import can.bridge
    from can.interfaces.socketcan import socketcan

    left = list(descriptors)
    vars(socketcan)["create_socket"] = lambda: _Marked(left.pop(0))
    vars(socketcan)["bind_socket"] = lambda sock, channel="": None
    options = [f"--bus{n}-{key}={value}" for n in (1, 2) for key, value in _OPTIONS.items()]
    sys.argv = ["can_bridge", *options, "--bus1-fd", "--bus2-fd"]
    can.bridge.main()


_OPTIONS = {"interface": "socketcan", "channel": "pair"}
SERVERS: dict[str, Callable[[list[int], float], None]] = {"ours": serve, "can_bridge": serve_python_can}


class Run(NamedTuple):
    """One measurement: microseconds of processor for each frame, and the share of frames that came."""

    frame_us: float
    came: float


def _used_s(process: int) -> float:
    """Return the processor time of all threads of a process, in seconds."""
    tasks = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(one.read_text().split()[0]) for one in tasks) / 1e9


class Trial:
    """A gateway of one kind in its process, and the far ends of its two sockets."""

    def __init__(self, server: str, gather_ms: float = GATHER_MS) -> None:
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]
        for end in (one for pair in pairs for one in pair):
            roomy(end)
            end.setblocking(True)
        self.ends = [ours for ours, _ in pairs]
        self._echoes = server == "ours"
        numbers = [theirs.fileno() for _, theirs in pairs]
        words = ["-m", "benchmarks.can_cost", "--serve", server, "--descriptors", ",".join(map(str, numbers))]
        words += ["--gather-ms", str(gather_ms)]
        self.process = subprocess.Popen([sys.executable, *words], pass_fds=numbers, stdout=subprocess.DEVNULL)
        for ours, theirs in pairs:
            theirs.close()
            ours.setblocking(False)

    def until_up(self, frame: bytes) -> None:
        """Wait until a frame crosses. Raises `TimeoutError`."""
        end_s = time.monotonic() + 30
        while time.monotonic() < end_s:
            self.ends[0].send(frame)
            time.sleep(0.1)
            if self.drain():
                return
        raise TimeoutError("no frame crossed")

    def drain(self) -> int:
        """Take what has crossed, and return to the gateway what it sent. Return the number of frames."""
        count = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                raw = bytearray(self.ends[1].recv(FD_BYTES))
                count += 1
                if self._echoes:
                    raw[MARKED] |= MARK
                    self.ends[1].send(raw)
        return count

    def load(self, load: Load, seconds: float) -> tuple[int, int]:
        """Send at the rate of the bus, frame by frame. Return how many were sent, and how many came."""
        frame, gap_s, sent, came = load.frame, 1 / load.rate, 0, 0
        began_s = time.perf_counter()
        while (now_s := time.perf_counter()) - began_s < seconds:
            if (wait_s := began_s + sent * gap_s - now_s) > 0:
                came += self.drain()
                time.sleep(wait_s)  # and not spin: the kernel takes the processor from real-time loops
                continue
            with contextlib.suppress(BlockingIOError):
                self.ends[0].send(frame)
            sent += 1
        idle = 0
        while idle < _IDLE:  # what waits for room needs the confirmations
            time.sleep(0.005)
            some = self.drain()
            came, idle = came + some, 0 if some else idle + 1
        return sent, came

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for end in self.ends:
            end.close()


def measure(server: str, load: Load, seconds: float, gather_ms: float) -> Run:
    """Return what a frame of a load costs a gateway."""
    trial = Trial(server, gather_ms)
    try:
        trial.until_up(load.frame)
        trial.load(load, _WARM_S)
        before_s = _used_s(trial.process.pid)
        sent, came = trial.load(load, seconds)
        return Run((_used_s(trial.process.pid) - before_s) / sent * 1e6, came / sent)
    finally:
        trial.close()


def main() -> int:
    """Return the exit status: 1 if a gateway of ours lost a frame."""
    parser = Command("benchmarks.can_cost", __doc__)
    parser.add_seconds(2.0)
    parser.add_repeat(3)
    parser.add_names("--loads", "loads", LOADS)
    parser.add_argument("--gather-ms", type=float, default=GATHER_MS, help="of our links (%(default)s)")
    parser.add_hidden("--serve", choices=SERVERS)
    parser.add_hidden("--descriptors", default="")
    options = parser.parse_args()
    if options.serve:
        SERVERS[options.serve]([int(number) for number in options.descriptors.split(",")], options.gather_ms)
        return 0
    os.set_blocking(sys.stdout.fileno(), True)
    whole = True
    for load in options.loads or LOADS:
        pairs = [
            [measure(server, load, options.seconds, options.gather_ms) for server in SERVERS]
            for _ in range(options.repeat)
        ]
        ours, theirs = (statistics.median(one.frame_us for one in each) for each in zip(*pairs, strict=True))
        ratio = statistics.median(there.frame_us / here.frame_us for here, there in pairs)
        came = min(here.came for here, _ in pairs)
        whole &= came == 1
        share = f"{ours * load.rate / 1e6:6.1%} of a core at {load.rate:7,.0f} a second"
        words = f"ours {ours:5.1f} us, can_bridge {theirs:5.1f} us: {ratio:.2f} times"
        print(f"{load.name:16} {words}; {share}, {came:.1%} came", flush=True)
    return 0 if whole else 1


if __name__ == "__main__":
    run_as_command(main)
