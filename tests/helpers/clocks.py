"""An event loop whose clock stands still until a test moves it: a process that had no turn for a while."""

import asyncio


class StandingLoop(asyncio.SelectorEventLoop):
    """A loop whose `time()` is `now_s`."""

    now_s = 100.0

    def time(self) -> float:
        return self.now_s

    def pass_s(self, seconds: float, turns: int = 10) -> None:
        """Let time pass at once, and then the loop have some turns."""
        self.now_s += seconds
        for _ in range(turns):
            self.run_until_complete(asyncio.sleep(0))
