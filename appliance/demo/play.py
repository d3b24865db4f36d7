"""The course of the demo: all members join and send for a while; at the end their counts are checked."""

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.live import Live

from appliance.demo import picture
from appliance.demo.scene import WHOLE, Scene, directory
from appliance.demo.table import misses
from appliance.process.interrupts import status_of
from appliance.process.serve import Stop
from appliance.process.streams import terminal

SECONDS = 8.0
JOIN_S = 20.0
SETTLE_S = 5.0
LOOK_S = 0.1


def new_capture() -> Path | None:
    """Make a directory for captures that remains. Return None if the package that writes them is missing."""
    if find_spec("pyarrow") is None:
        return None
    return Path(tempfile.mkdtemp(prefix="buscoupler-demo-"))


def is_recorded(capture: Path) -> bool:
    """Return whether a finished file is in a directory of captures."""
    return any(capture.rglob("*.parquet"))


async def play(seconds: float | None, rate: float, capture: Path | None = None) -> int:
    """Run the whole demo. Without `seconds` it stays on a terminal, with a page, until Ctrl-C.

    Return 0 if every frame arrived everywhere once, else 1; 128 + a signal that came before the verdict.
    """
    stop, console = Stop(asyncio.get_running_loop()), Console(file=terminal())
    status = await prove(seconds or SECONDS, rate, capture, console, stop)
    if not status and seconds is None and console.is_terminal:
        await stay(rate, console, stop)
    return status


async def prove(seconds: float, rate: float, capture: Path | None, console: Console, stop: Stop) -> int:
    """Let all send for a while, and show what arrived. Return the exit status."""
    with directory() as name:
        scene = Scene(Path(name), capture)
        try:
            await scene.start()
            picture.introduce(scene, console)
            if await until(lambda: all_joined(scene) or scene.failed() or stop.is_set(), JOIN_S):
                await talk(scene, seconds, rate, console, stop)
        finally:
            failed = scene.failed()
            ledgers = await scene.stop()
        is_over = stop.number and not any(member.sent for member in scene.members)
        wrong = faults(scene, ledgers, failed)
        if not is_over:
            picture.ledgers(ledgers, console)
            picture.verdict(scene, wrong, console)
    if capture is not None and is_recorded(capture):
        picture.next_step(capture, console)
    return status_of(stop.number) if stop.number else int(bool(wrong))


async def stay(rate: float, console: Console, stop: Stop) -> None:
    """Run the same as one gateway, and say where its page is, until a signal."""
    with directory() as name:
        scene = Scene(Path(name), parts=WHOLE)
        try:
            await scene.start()
            picture.look(scene, await asyncio.to_thread(scene.page), console)
            while not stop.is_set() and not scene.failed():
                for member in scene.members:
                    if member.readings:
                        member.say(member.frame())
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), 1 / rate)
        finally:
            await scene.stop()


def all_joined(scene: Scene) -> bool:
    """Send all greetings. Return whether each member has heard all others: then the segments are one bus."""
    speakers = [member for member in scene.members if member.readings]
    for member in speakers:
        member.say(member.greeting())
    return all(speaker.token in m.greeted for speaker in speakers for m in scene.members if m is not speaker)


async def talk(scene: Scene, seconds: float, rate: float, console: Console, stop: asyncio.Event) -> None:
    """Send from all members until the time is over or Ctrl-C, then wait for the last frames."""
    loop = asyncio.get_running_loop()
    begin, shown = loop.time(), 0.0
    with shown_live(scene, console) as show:
        while not stop.is_set() and (elapsed := loop.time() - begin) < seconds and not scene.failed():
            send_due(scene, int(elapsed * rate) + 1)
            if elapsed - shown >= LOOK_S:
                show()
                shown = elapsed
            await asyncio.sleep(min(0.01, 1 / rate))
        if not stop.is_set() and not scene.failed():
            send_due(scene, max(1, int(seconds * rate)))  # not fewer because the machine was busy
        await until(lambda: not misses(scene.members), SETTLE_S)


@contextmanager
def shown_live(scene: Scene, console: Console) -> Iterator[Callable[[], None]]:
    """Show the table on a terminal whenever the yielded function is called, and anywhere at the end."""
    if not console.is_terminal:
        yield lambda: None
        console.print(picture.counts(scene.members, console))
        return
    with Live(console=console, refresh_per_second=8) as live:
        yield lambda: live.update(picture.counts(scene.members, console))
        live.update(picture.counts(scene.members, console))


def send_due(scene: Scene, due: int) -> None:
    """Send from each member until it has sent `due` frames."""
    for member in scene.members:
        while member.readings and member.sent < due:
            member.say(member.frame())


async def until(condition: Callable[[], object], limit_s: float) -> bool:
    """Poll the condition for `limit_s` seconds. Return whether it became true."""
    deadline = asyncio.get_running_loop().time() + limit_s
    while not condition():
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(LOOK_S)
    return True


def faults(scene: Scene, ledgers: dict[str, str], failed: str | None) -> list[str]:
    """Return a line for everything that went wrong."""
    wrong = misses(scene.members)
    if not any(member.sent for member in scene.members):
        cause = f"the process of {failed} ended" if failed else f"not all members joined within {JOIN_S:g} s"
        wrong = [f"nothing was sent: {cause}"]
    return wrong + [f"{part}: the ledger does not balance" for part, text in ledgers.items() if "NOT" in text]
