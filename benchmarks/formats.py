"""The cost of the wire formats: processor time to encode and to decode a frame, by format and size."""

import time
from collections.abc import Callable, Sequence
from random import Random
from statistics import median
from typing import NamedTuple

from bridges.admission import Admission
from bridges.ingress import admit_stamped
from bridges.media.can import codec as can
from bridges.media.i2c.mailbox_controller import Access, Controller
from bridges.media.i2c.mailbox_target import Target
from bridges.media.multicast import datagram
from bridges.media.tcp import frames
from bridges.media.uart import codec as uart
from bridges.rules import Rules
from bus.ledger import Stats
from bus.wire.batch import Batch, from_payloads
from bus.wire.frame import pack

SIZES = (20, 200, 2048)
_BATCH = 256
_ROUNDS = 7


class Cost(NamedTuple):
    """Microseconds of processor time for each frame: the median of several rounds over one batch."""

    name: str
    size: int
    encode_us: float
    decode_us: float


def frame_of(size: int, number: int = 0) -> bytes:
    """Return a frame of `size` bytes with one token. Its data is random, but the same for each `number`."""
    return pack(1, (number,), Random(number).randbytes(size - 8))


def timed_us(work: Callable[[], object], count: int) -> float:
    """Return the microseconds of one of the `count` steps that a call of `work` does."""
    spent = []
    for _ in range(_ROUNDS):
        start = time.process_time_ns()
        work()
        spent.append((time.process_time_ns() - start) / 1000 / count)
    return median(spent)


def measure() -> list[Cost]:
    """Measure every format at every size."""
    return [
        Cost(
            name, size, *(timed_us(work, _BATCH) for work in make([frame_of(size, n) for n in range(_BATCH)]))
        )
        for name, make in FORMATS.items()
        for size in SIZES
    ]


Works = tuple[Callable[[], object], Callable[[], object]]


def _uart(messages: Sequence[bytes]) -> Works:
    line = b"".join(map(uart.encode, messages))
    return lambda: [uart.encode(m) for m in messages], lambda: uart.Decoder({}).feed(line)


def _can(messages: Sequence[bytes], fd: bool = False) -> Works:
    transfers = [can.segment(m, n, fd) for n, m in enumerate(messages)]
    identifier = can.can_id(can.SUBJECT_DEFAULT, 5)

    def decode() -> int:
        feed = can.Reassembler(can.SUBJECT_DEFAULT, {}).feed
        return sum(feed(0.0, identifier, data) is not None for transfer in transfers for data in transfer)

    assert decode() == len(messages)
    return lambda: [can.segment(m, n, fd) for n, m in enumerate(messages)], decode


def _can_fd(messages: Sequence[bytes]) -> Works:
    return _can(messages, fd=True)


def _multicast(messages: Sequence[bytes]) -> Works:
    batch = from_payloads(messages)
    made = [(data, "sender") for data, _ in datagram.Encoder(1400, 1, 0).encode(batch)]
    encoder = datagram.Encoder(1400, 1, 0)
    return lambda: encoder.encode(batch), lambda: datagram.Decoder({}).feed(made, 0.0)


def _tcp(messages: Sequence[bytes]) -> Works:
    batch = from_payloads(messages)
    stream, _ = frames.join(batch)
    return lambda: frames.join(batch), lambda: frames.cut(bytes(stream))


def _i2c(messages: Sequence[bytes]) -> Works:
    """Send to a target through its mailbox. Both ends count as encoding: it needs the target's answers."""

    def cross() -> int:
        controller, target, now, came = Controller(), Target(), 0.0, 0
        for message in messages:
            sent = False
            while not (sent and controller.ready):
                if controller.ready and not sent:
                    controller.send(now, message)
                    sent = True
                now += 0.001
                access = controller.next(now)
                came += 0 if access is None else _serve(controller, target, access, now)
        return came

    return cross, lambda: None


def _serve(controller: Controller, target: Target, access: Access, now: float) -> int:
    """Do one access on a bus without faults. Return how many messages it completed at the target."""
    start = access.register
    if access.size:
        controller.done(now, bytes(target.memory[start : start + access.size]))
    else:
        came = len(target.written(now, start, access.data))
        controller.done(now)
        return came
    return len(target.poll(now))


def _trunk(messages: Sequence[bytes]) -> Works:
    batch = from_payloads(messages)

    def stamp() -> Batch | None:
        return admit_stamped(batch, Admission(1, Rules(), lambda key: True), 0, Stats())[0]

    made = stamp()
    assert made is not None
    kept = Batch(made.keep(), made.count)
    return stamp, lambda: admit_stamped(kept, Admission(2, Rules(), lambda key: True), 0, Stats())


FORMATS: dict[str, Callable[[Sequence[bytes]], Works]] = {
    "trunk (envelope)": _trunk,
    "TCP frames": _tcp,
    "multicast": _multicast,
    "UART": _uart,
    "CAN": _can,
    "CAN FD": _can_fd,
    "I2C (both ends)": _i2c,
}
