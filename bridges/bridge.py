"""The bridge: a hub whose links are attached through sides, with policies per pipe (ARCHITECTURE.md)."""

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from bridges.handover.entrance import AGE_S, ALONE, Entrance, Rank, never
from bridges.inside import Announced, Inside
from bridges.policy import PASS_ALL, Policy
from bridges.rules import Rule
from bridges.side import Port, Side
from bus.hub import Pipe
from bus.wire.pattern import Pattern

if TYPE_CHECKING:
    from bridges.handover.gate import Gate
    from bridges.handover.parallel import Parallel


def always() -> bool:
    """Return True: messages are held back whether or not another appliance is there."""
    return True


class Bridge(Inside):
    """A hub that carries frames that match `pattern` between its sides. Arguments are those of `Inside`."""

    def __init__(
        self,
        name: str,
        origin: int,
        pattern: Iterable[int | str] = (),
        clock: Callable[[], float] = time.monotonic,
        sequence: int | None = None,
        announced: Announced | None = None,
    ) -> None:
        super().__init__(name, origin, pattern, clock, sequence, announced)
        self.sides: tuple[Side, ...] = ()

    def side(self, name: str, policy: Policy = PASS_ALL, hold_needed: Callable[[], bool] = always) -> Side:
        """Make a side, to open a link or join a hub on. Only a side with `policy.trunk` sends envelopes.

        Sides may come, go and change at any time between two batches. `hold_needed()` tells whether another
        appliance is on the trunk, so that this one should hold messages back for `policy.hold_s`.
        """
        made = Side(self, name, policy, hold_needed)
        self.sides += (made,)
        self.settle()
        return made

    def revise_side(self, side: Side, policy: Policy) -> None:
        """Make a side judge by another policy from the next batch on."""
        side.take(policy)
        self.settle()

    def remove(self, side: Side) -> None:
        """Forget a side whose links are closed. It is no error if it is not there."""
        self.sides = tuple(other for other in self.sides if other is not side)
        self.settle()

    def revise(self, origin: int, pattern: Iterable[int | str]) -> None:
        """Carry only frames that match `pattern` from now on, and stamp with `origin`."""
        self.origin, self.core_rule = origin, Rule([Pattern(*pattern)])
        self.settle()

    def settle(self) -> None:
        """Make all sides judge by the present rules, from the next batch on."""
        self.simple = not self.core_rule and all(side.plain for side in self.sides)
        self.stamps = any(side.trunk for side in self.sides)
        self.prompt_sides = sum(not side.late for side in self.sides)
        for number, side in enumerate(self.sides):
            side.settle(number)
        if self.gate is not None:
            self.gate.revise(self.sides)

    def stand_by(
        self,
        may_forward: Callable[[float], bool],
        on_lapse: Callable[[], None] = lambda: None,
        age_s: float = AGE_S,
        rank: Rank = ALONE,
        in_doubt: Callable[[], bool] = never,
    ) -> "Gate":
        """Forward nothing until the returned gate is told to `resume`. An earlier gate is forgotten.

        For a bridge that several gateways run; the arguments are those of `Gate`.
        """
        from bridges.handover.gate import Gate  # late: most gateways run their bridges alone

        rest = on_lapse, age_s, rank, in_doubt
        gate = Gate(self.sides, self.origin, self.seen, self.clock, may_forward, *rest)
        self._enter_by(gate)
        return gate

    def forward_beside_others(self, rank: Rank) -> "Parallel":
        """Forward, as all other candidates do at the same time, with the stamps that they share."""
        from bridges.handover.parallel import Parallel

        parallel = Parallel(self.sides, self.origin, self.clock, rank)
        self._enter_by(parallel)
        return parallel

    def stand_alone(self) -> None:
        """Forward without asking, as no other gateway runs this bridge."""
        self._enter_by(None)

    def _enter_by(self, entrance: Entrance | None) -> None:
        if self.gate is not None:
            self.gate.end()
        self.gate = entrance

    def is_guest(self, pipe: Pipe) -> bool:
        """Tell whether anybody may be at the other end; at a trunk there are appliances."""
        return super().is_guest(pipe) and not (isinstance(pipe, Port) and pipe.side.trunk)
