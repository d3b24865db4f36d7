"""Weigh the status page: `python -m benchmarks.status_page [--rounds N] [--seconds N]`.

A gateway has 1,000 peers on 50 addresses, real connections on loopback, and ten messages a second go to each.
Chromium opens the page and leaves it again, in turns. Printed are medians: what share of a core the gateway
spends more while the page is open, and how long the browser's main thread works for one status, that is for
script, style and layout. Both are processor time, which other load does not change. Ends with 1 if one is
above its limit.
"""

import argparse
import selectors
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks.processes import processor_s
from benchmarks.startup import gateway
from bus.wire.batch import from_payloads
from bus.wire.frame import PUB, pack
from bus.wire.sp import HANDSHAKE
from tests.helpers.ports import free_port

if TYPE_CHECKING:
    from tests.helpers.browser import Page

SHARE: Final = 0.05
FRAME_MS: Final = 16.0
ADDRESSES: Final = 50
PEERS: Final = 1000
MESSAGES_PER_S: Final = 10
_SETTLE_S: Final = 1.5  # of a page that has just been opened or left
_WORK: Final = ("ScriptDuration", "RecalcStyleDuration", "LayoutDuration")
_COUNT: Final = """
window.statuses = 0; window.frames_ms = [];
source.addEventListener("message", () => { statuses++; frames_ms.push(window.buscouplerFrameMs); });
"""


class Round(NamedTuple):
    """The gateway's share of a core without the page and with it, and what the browser did.

    `work_ms` is for each status; `frames_ms` has the time of the script for each frame but the last.
    """

    without: float
    open: float
    work_ms: float
    frames_ms: Sequence[float]

    @property
    def page(self) -> float:
        return self.open - self.without


class Frames(NamedTuple):
    """Processor time of the browser's main thread and the statuses that it has shown."""

    work_s: float
    statuses: int


def topology(page: int, ports: Sequence[int]) -> str:
    """Return the text of a gateway with a page and a bus at these ports."""
    listen = "".join(f'      - "tcp://127.0.0.1:{port}"\n' for port in ports)
    return (
        f"name: weighed\ngateways:\n  gw:\n    address: 127.0.0.1\n    status: http://127.0.0.1:{page}\n"
        f"buses:\n  plant:\n    on: gw\n    listen:\n{listen}"
    )


class Peers:
    """So many SP peers at each of some ports. One of them speaks; all read and discard."""

    def __init__(self, ports: Sequence[int], count: int) -> None:
        self._ends = [socket.create_connection(("127.0.0.1", ports[n % len(ports)])) for n in range(count)]
        self._selector, self._stopped = selectors.DefaultSelector(), threading.Event()
        for end in self._ends:
            end.sendall(HANDSHAKE)
            self._selector.register(end, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        message, due_s = from_payloads([pack(PUB, (1, 2), bytes(64))]).data, 0.0
        while not self._stopped.is_set():
            if (now_s := time.monotonic()) >= due_s:
                self._ends[0].sendall(message)
                due_s = now_s + 1 / MESSAGES_PER_S
            for key, _ in self._selector.select(max(0.0, due_s - now_s)):
                assert isinstance(key.fileobj, socket.socket)
                key.fileobj.recv(65_536)

    def close(self) -> None:
        self._stopped.set()
        self._thread.join()
        for end in self._ends:
            end.close()


def share(pid: int, seconds: float) -> float:
    """Return what share of a core a process takes in so many seconds."""
    start_s, spent_s = time.monotonic(), processor_s(pid)
    time.sleep(seconds)
    return (processor_s(pid) - spent_s) / (time.monotonic() - start_s)


def frames(page: "Page") -> Frames:
    """Return the work of a page since it was opened."""
    found = {one["name"]: one["value"] for one in page.ask("Performance.getMetrics")["metrics"]}
    return Frames(sum(found[name] for name in _WORK), page.run("statuses"))


def measured(page: "Page", url: str, pid: int, peers: int, seconds: float) -> Round:
    """Measure once without the page and once with it. The page must show that all peers are there."""
    page.open("about:blank")
    time.sleep(_SETTLE_S)
    without = share(pid, seconds)
    page.open(url)
    page.until(f"document.querySelector('#picture')?.textContent.includes('{peers} peers')")
    page.run(_COUNT)
    time.sleep(_SETTLE_S)
    before, shared, after = frames(page), share(pid, seconds), frames(page)
    work_s = (after.work_s - before.work_s) / max(1, after.statuses - before.statuses)
    return Round(without, shared, 1000 * work_s, page.run("frames_ms"))


@contextmanager
def weighed(peers: int) -> Iterator[tuple["Page", str, int]]:
    """Run the gateway with its peers, and a browser. Yield its page, its address, and the gateway's pid."""
    from tests.helpers.browser import browser  # the same that drives Chromium in tests

    ports = [free_port() for _ in range(ADDRESSES + 1)]
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bc-")))
        process, _ = stack.enter_context(gateway(topology(ports[0], ports[1:]), directory, 0))
        made = Peers(ports[1:], peers)
        stack.callback(made.close)
        page = stack.enter_context(browser())
        page.ask("Performance.enable", timeDomain="threadTicks")
        yield page, f"http://127.0.0.1:{ports[0]}", process.pid


def rounds(count: int, seconds: float, peers: int = PEERS) -> list[Round]:
    with weighed(peers) as (page, url, pid):
        return [measured(page, url, pid, peers, seconds) for _ in range(count)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--rounds", type=int, default=9, metavar="N", help="of which the median counts")
    parser.add_argument("--seconds", type=float, default=8.0, metavar="N", help="with the page, and without")
    options = parser.parse_args()
    found = rounds(options.rounds, options.seconds)
    page, work_ms = median(one.page for one in found), median(one.work_ms for one in found)
    without = median(one.without for one in found)
    worst_ms = max(ms for one in found for ms in one.frames_ms)
    print(f"gateway, {PEERS} peers, without the page: {without:.1%} of a core")
    print(f"for the page: {page:.1%} of a core")
    print(
        f"browser: {work_ms:.1f} ms of its main thread a status; longest script of a frame {worst_ms:.1f} ms"
    )
    return int(page > SHARE or work_ms > FRAME_MS)


if __name__ == "__main__":
    sys.exit(main())
