"""The clock and the chance of a simulated plant. Install them before the product is imported."""

import random
import secrets
import time

START_S = 1000.0
_EPOCH_S = 1_750_000_000.0


class Clock:
    """Seconds since some start, which only the scheduler moves. `steps_s` moves the time of day alone."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.now_s, self.steps_s = START_S, 0.0

    def monotonic(self) -> float:
        return self.now_s

    def monotonic_ns(self) -> int:
        return int(self.now_s * 1e9)

    def time(self) -> float:
        return _EPOCH_S + self.now_s + self.steps_s

    def time_ns(self) -> int:
        return int(self.time() * 1e9)


clock = Clock()


def install() -> None:
    """Put the clock in place of the functions of `time`. Modules keep those that they know already."""
    for name in ("monotonic", "monotonic_ns", "time", "time_ns"):
        setattr(time, name, vars(Clock)[name].__get__(clock))


def begin(seed: int) -> None:
    """Set the clock to its start, and draw all chance from `seed`."""
    clock.reset()
    random.seed(seed)
    for name, drawn in {"randbits": random.getrandbits, "token_bytes": random.randbytes}.items():
        setattr(secrets, name, drawn)
