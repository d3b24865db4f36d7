"""A controller and a target of the I2C mailbox on a bus in virtual time, with faults."""

from collections.abc import Callable

from bridges.media.i2c.mailbox_controller import Access, Controller
from bridges.media.i2c.mailbox_target import Target


class Wire:
    """One controller and one target on a bus in virtual time; `fault` sees each access and can change it."""

    def __init__(self, fault: "Callable[[Access, bytes], bytes | None] | None" = None) -> None:
        self.now = 0.0
        self.controller, self.target = Controller(), Target()
        self.fault = fault
        self.serving = True
        self.trace: list[str] = []
        self.to_target: list[bytes] = []
        self.to_controller: list[bytes] = []
        self.outcomes: list[str] = []
        self.backlog: list[bytes] = []

    def access(self, wanted: Access) -> None:
        """Do one access, as the adapter would, in 0.5 ms. The target reads its memory after a write."""
        self.now += 0.0005
        memory = self.target.memory
        held = bytes(memory[wanted.register : wanted.register + wanted.size]) if wanted.size else wanted.data
        carried = held if self.fault is None else self.fault(wanted, held)
        if carried is None:
            return self.controller.failed(self.now)
        if not wanted.size:
            self.trace.append(f"{wanted.register:02x} {carried.hex(' ')}")
            self.write(wanted.register, carried)
            carried = b""
        else:
            self.trace.append(f"{wanted.register:02x} [{carried.hex(' ')}]")
        message = self.controller.done(self.now, carried)
        if message is not None:
            self.to_controller.append(message)
        return None

    def write(self, register: int, data: bytes) -> None:
        if self.serving:
            self.to_target += self.target.written(self.now, register, data)
        else:
            self.target.memory[register : register + len(data)] = data

    @property
    def state(self) -> str:
        return self.controller.state

    def turn(self) -> None:
        """Offer waiting messages, then do one access, or rest until the next one."""
        if self.backlog and self.controller.ready:
            self.controller.send(self.now, self.backlog.pop(0))
        if self.serving:
            self.to_target += self.target.poll(self.now)
        wanted = self.controller.next(self.now)
        if wanted is None:
            self.now = max(self.controller.due_s, self.now)
        else:
            self.access(wanted)
        if self.controller.outcome is not None:
            self.outcomes.append(self.controller.outcome)
            self.controller.outcome = None

    def run(self, until: Callable[[], bool], seconds: float = 600.0) -> None:
        end_s = self.now + seconds
        while not until():
            assert self.now < end_s, "it never came true"
            self.turn()

    def pass_time(self, seconds: float) -> None:
        end_s = self.now + seconds
        self.run(lambda: self.now >= end_s)


def exchange(wire: Wire, there: list[bytes], back: list[bytes]) -> None:
    wire.backlog = list(there)
    for message in back:
        assert wire.target.send(message)
    wire.run(lambda: len(wire.outcomes) == len(there) and not wire.target.queued)
    wire.pass_time(1.0)
