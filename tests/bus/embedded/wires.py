"""The wires between a gateway's controller and a target's mailbox, in virtual time."""

import random
from typing import Any

from bridges.media.i2c.mailbox_controller import Controller


class Wires:
    """A controller and a target's memory; `fails` is the share of accesses without acknowledgement.

    `target` has `memory`, `send` and `poll`, as a node's mailbox.
    """

    def __init__(self, target: Any, fails: float = 0.0) -> None:
        self.target, self.fails, self.now = target, fails, 0.0
        self.chance = random.Random(7)
        self.controller = Controller()
        self.up: list[bytes] = []
        self.down: list[bytes] = []

    def turn(self) -> None:
        access = self.controller.next(self.now)
        self.now += 0.001
        if access is None:
            return
        if self.chance.random() < self.fails:
            return self.controller.failed(self.now)
        memory = self.target.memory
        if access.size:
            message = self.controller.done(
                self.now, bytes(memory[access.register : access.register + access.size])
            )
            self.up += [] if message is None else [message]
        else:
            memory[access.register : access.register + len(access.data)] = access.data
            self.controller.done(self.now)
        message = self.target.poll()
        self.down += [] if message is None else [message]

    def link(self) -> None:
        for _ in range(2000):
            self.turn()
            if self.controller.ready:
                return
        raise AssertionError("the controller and the target did not link")

    def send(self, messages: list[bytes]) -> list[str | None]:
        outcomes: list[str | None] = []
        for message in messages:
            self.link()
            self.controller.send(self.now, message)
            while self.controller.outcome is None:
                self.turn()
            outcomes.append(self.controller.outcome)
        return outcomes
