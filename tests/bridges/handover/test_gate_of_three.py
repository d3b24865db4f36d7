"""Three copies of a bridge between media: whichever leaves, each frame crosses once."""

import pytest

from tests.bridges.handover.gate_support import SETUPS, Copy, End, World, come_in


class Trio(World):
    """Three copies. Frames to a frozen copy wait."""

    def __init__(self, trunks: tuple[bool, bool], seed: int, equal: bool, known: bool) -> None:
        super().__init__(trunks, seed, equal, known)
        self.copies["c"] = Copy("c", self)
        self.frozen = set[str]()
        self._slow_down()
        self.clock.now += 11.0 * known

    def _slow_down(self) -> None:
        for copy in self.copies.values():
            for end in copy.ends:
                end.slow = True

    def ends(self, who: str) -> list[End]:
        return [] if who in self.frozen else super().ends(who)

    def churn(self, steps: int) -> None:
        for _ in range(steps):
            self.clock.now += self.chance.random() * 0.002
            if self.chance.random() < 0.25:
                side = self.chance.randrange(2)
                self.stations[side].say(self.frame(side))
            for who in self.chance.choices(["station", *self.copies], k=3):
                for end in self.ends(who):
                    end.hear(self.chance.randint(1, 4))
                    end.move(self.chance.randint(0, 3))
            assert all(copy.balanced() for copy in self.copies.values())

    def leave(self, who: str, fault: str) -> None:
        """Make a copy stop forwarding."""
        if fault == "dies":
            return self.die(who)
        self.copies[who].may = False
        if fault == "freezes":
            self.frozen.add(who)
        else:
            self.copies[who].gate.pause()
            self.copies[who].gate.purge()

    def come_back(self, who: str, fault: str) -> None:
        if fault == "dies":
            come_in(self, who)
            return self._slow_down()
        if fault == "freezes":
            self.frozen.discard(who)
            self.copies[who].gate.purge()
            self.drain(who)
            self.drain(*self.copies)
            self.copies[who].gate.pause()
            for station in self.stations:
                station.remembers = True
            self.copies[who].gate.blind(self.clock.now)
            self.clock.now += 0.3


@pytest.mark.parametrize("equal", [False, True], ids=["numbered", "equal readings"])
@pytest.mark.parametrize("trunks", SETUPS, ids=["trunks", "plain", "mixed"])
@pytest.mark.parametrize("known", [True, False], ids=["known", "young"])
@pytest.mark.parametrize("seed", range(6))
def test_of_three_whichever_leaves_however_every_frame_crosses_once(
    trunks: tuple[bool, bool], seed: int, equal: bool, known: bool
) -> None:
    world = Trio(trunks, seed, equal, known)
    chance, active = world.chance, "a"
    world.copies[active].promote()
    for _ in range(4):
        world.churn(chance.randint(5, 100))
        fault = chance.choice(["dies", "freezes", "resigns"])
        before, active = active, chance.choice([who for who in "abc" if who != active or fault == "resigns"])
        world.leave(before, fault)
        world.churn(chance.randint(0, 20))
        world.drain(active)
        world.copies[active].promote()
        world.churn(chance.randint(5, 60))
        world.come_back(before, fault)
    world.churn(60)
    world.check()
