"""`buscoupler demo`: start the scene, let all members send, show the table, and check the ledgers."""

import argparse
import asyncio
import logging
import signal
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.live import Live

from appliance.demo.scene import Scene, directory
from appliance.demo.table import misses, table
from appliance.probe.words import above_zero

log = logging.getLogger("buscoupler")

JOIN_S = 20.0
SETTLE_S = 5.0
LOOK_S = 0.1


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=above_zero, default=8.0, metavar="S", help="send for S seconds (8)")
    parser.add_argument(
        "--capture",
        type=Path,
        metavar="DIR",
        help="record all traffic in DIR (default: a new directory in /tmp)",
    )
    parser.add_argument("--no-capture", action="store_true", help="record nothing")
    parser.add_argument(
        "--rate", type=above_zero, default=50.0, metavar="N", help="frames a second from each sender (50)"
    )


def run(options: argparse.Namespace) -> int:
    capture = None if options.no_capture else options.capture or new_capture()
    return asyncio.run(play(options.seconds, options.rate, Console(), capture and capture.absolute()))


def new_capture() -> Path | None:
    """Make a directory that remains. Return None if the package that writes captures is missing."""
    if find_spec("pyarrow") is None:
        return None
    return Path(tempfile.mkdtemp(prefix="buscoupler-demo-"))


async def play(seconds: float, rate: float, console: Console, capture: Path | None = None) -> int:
    """Run the whole demo. Return 0 if every frame arrived everywhere exactly once, else 1."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with directory() as name:
        scene = Scene(Path(name), capture)
        try:
            await scene.start()
            introduce(scene, console)
            if await until(lambda: all_joined(scene) or scene.failed() or stop.is_set(), JOIN_S):
                await talk(scene, seconds, rate, console, stop)
        finally:
            failed = scene.failed()
            ledgers = await scene.stop()
        status = conclude(scene, ledgers, failed, console)
    if capture is not None:
        console.print(
            f"The traffic is in {capture}; check it with: buscoupler audit {capture}", soft_wrap=True
        )
    return status


def introduce(scene: Scene, console: Console) -> None:
    console.print("Two TCP buses, a serial line and a CAN bus; each bus and the bridge is a process:")
    console.print(f"  plant {scene.plant}, office {scene.office}, serial line {scene.line.a}")
    console.print(f"  CAN {scene.can['interface']} {scene.can['channel']} {scene.can['options'] or ''}")
    if not scene.foreign:
        console.print("  (nanocat and nngcat are not installed: the demo runs without foreign peers)")


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
    with Live(table(scene.members), console=console, refresh_per_second=8) as live:
        while not stop.is_set() and (elapsed := loop.time() - begin) < seconds and not scene.failed():
            send_due(scene, int(elapsed * rate) + 1)
            if elapsed - shown >= LOOK_S:
                live.update(table(scene.members))
                shown = elapsed
            await asyncio.sleep(min(0.01, 1 / rate))
        await until(lambda: not misses(scene.members), SETTLE_S)
        live.update(table(scene.members))


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


def conclude(scene: Scene, ledgers: dict[str, str], failed: str | None, console: Console) -> int:
    """Print the processes' ledgers and the verdict."""
    for part, text in ledgers.items():
        console.print(f"[bold]{part}[/bold] {text}", highlight=False, soft_wrap=True)
    sent = sum(member.sent for member in scene.members)
    wrong = misses(scene.members)
    if not sent:
        cause = f"the process of {failed} ended" if failed else f"not all members joined within {JOIN_S:g} s"
        wrong = [f"nothing was sent: {cause}"]
    wrong += [f"{part}: the ledger does not balance" for part, text in ledgers.items() if "NOT" in text]
    for line in wrong:
        console.print(f"[red]{line}[/red]")
    if wrong:
        console.print(scene.log.read_text(), highlight=False)
    received = sum(sum(member.received.values()) for member in scene.members)
    if not wrong:
        console.print(
            f"The ledger balances: {sent} frames sent, {received} received; each reached all others once."
        )
    return int(bool(wrong))
