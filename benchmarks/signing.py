"""The cost of signing on a trunk of streams: `python -m benchmarks.signing`.

Two ends in one process, over loopback. Each figure is the time of processor and kernel for a message that one
end sends and the other receives; the ratio is taken between turns that follow each other, and the median is
told. `--plain` prints the unsigned figures only, for a comparison with another version of the program.
"""

import asyncio
import statistics
import time

from benchmarks.command import Command, run_as_command
from bridges.media.seals import Seals
from bus.hub import Hub
from bus.keys import Keyring
from bus.transports.dialling import DialLink
from bus.transports.listening import ListenLink
from bus.wire.batch import Batch, from_payloads

FORMS = (("64 B, batched", 64, 512), ("1 KiB, batched", 1024, 32), ("64 B, one a write", 64, 1))
_BYTES = 32 << 20
_AHEAD = 256 * 1024


class Counter:
    """A tap that counts what arrives."""

    def __init__(self, hub: Hub) -> None:
        self.count = 0
        hub.tap(lambda batch, _: self.add(batch.count))

    def add(self, count: int) -> None:
        self.count += count


async def turn(size: int, together: int, signed: bool) -> float:
    """Return the seconds that a message takes."""
    keys = Keyring((b"k" * 32,)) if signed else None
    loop, near, far = asyncio.get_running_loop(), Hub(), Hub()
    listening = ListenLink("tcp://127.0.0.1:0", keys=keys)
    listening.open(near, loop)
    dialling = DialLink(listening.url, keys=keys)
    dialling.open(far, loop)
    while not (near.pipes and far.pipes):
        await asyncio.sleep(0.001)
    try:
        return await _send(near, Counter(far), from_payloads([bytes(size)] * together))
    finally:
        dialling.close()
        listening.close()


async def _send(hub: Hub, counter: Counter, batch: Batch) -> float:
    total = min(_BYTES, 1000 * len(batch.data) * (64 if batch.count == 1 else 8)) // len(batch.data)
    ahead, began, sent = max(1, _AHEAD // len(batch.data)), time.process_time(), 0
    while counter.count < total * batch.count:
        while sent < total and sent - counter.count // batch.count < ahead:
            hub.publish(batch)
            sent += 1
        await asyncio.sleep(0)
    return (time.process_time() - began) / (total * batch.count)


def seal_s(size: int) -> float:
    """Return the seconds that sealing and opening take on a wire that several share."""
    ring, messages = Keyring((b"k" * 32,)), [bytes(size)] * 1000
    near, far = (Seals(ring, "can", sender, time.time, {}) for sender in (1, 2))
    began = time.process_time()
    found = far.opened([near.seal(message) for message in messages])
    assert len(found) == len(messages)
    return (time.process_time() - began) / len(messages)


def main() -> None:
    parser = Command("benchmarks.signing", __doc__)
    parser.add_repeat(7)
    parser.add_argument("--plain", action="store_true")
    options = parser.parse_args()
    for name, size, together in FORMS:
        plain, ratios = [], []
        for _ in range(options.repeat):
            plain.append(asyncio.run(turn(size, together, False)))
            if not options.plain:
                ratios.append(asyncio.run(turn(size, together, True)) / plain[-1])
        text = f"{name}: {statistics.median(plain) * 1e6:.3f} µs a message"
        if ratios:
            text += f"; signed {statistics.median(ratios):.2f} times ({min(ratios):.2f}..{max(ratios):.2f})"
        print(text)
    if not options.plain:
        taken = statistics.median(seal_s(100) for _ in range(options.repeat))
        print(f"a message of 100 B on a shared wire: sealed and opened in {taken * 1e6:.1f} µs")


if __name__ == "__main__":
    run_as_command(main)
