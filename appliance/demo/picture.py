"""The demo in words, for any width: what runs, what each count means, the processes' ledgers, the verdict.

Paragraphs fit the width. Lines of counts and paths wrap on a terminal only: in a pipe each stays one line.
"""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from rich.console import Console, Group
from rich.measure import Measurement
from rich.text import Text

from appliance.demo import table
from appliance.demo.members import Member
from appliance.demo.scene import Scene
from bus.extras import install, program
from pipeline.engine import jars, sail

_UNBOUNDED = 10_000
COUNTS = "Each member must receive every frame of every other member once, and none of its own."
LEDGERS = (
    "The ledger of each process, in messages since the start: `in` came from the peers of a link, `out` went "
    "to them. Whatever else was for them must be dropped for a named reason, or still queued."
)


def counts(members: Sequence[Member], console: Console) -> Group:
    """Return the table of frames by sender and receiver: whole where it fits, else by sender only."""
    whole = table.matrix(members)
    unbounded = console.options.update(max_width=_UNBOUNDED)
    fits = Measurement.get(console, unbounded, whole).maximum <= console.width
    newest = "; ".join(f"{member.name} {member.last}" for member in members if member.last)
    head = "Frames received, by sender (rows) and receiver (columns):"
    if not fits:
        whole, head = table.lines(members), f"Frames received by each of the {len(members) - 1} others:"
    return Group(Text(head), whole, Text(f"newest: {newest}", "dim"))


def say(console: Console, text: str, style: str = "") -> None:
    """Print a paragraph that fits the width. Paths are never broken."""
    put(console, fill(text, console.width, break_long_words=False, break_on_hyphens=False), style)


def tell(console: Console, line: str, style: str = "") -> None:
    """Print a line of counts. On a terminal a long one goes on below, indented."""
    if console.is_terminal and len(line) > console.width:
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        line = fill(line, console.width, subsequent_indent=indent, break_long_words=False,
                    break_on_hyphens=False)  # fmt: skip
    put(console, line, style)


def put(console: Console, text: str, style: str = "") -> None:
    """Print text unchanged, such as commands that a user copies."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def introduce(scene: Scene, console: Console) -> None:
    """Print what runs, and where others can join."""
    say(console, "Two TCP buses, a serial line and a CAN bus, joined into one by a bridge.")
    options = ", ".join(f"{name} {value}" for name, value in scene.can["options"].items())
    for name, what in (
        ("plant", f"{scene.plant}"),
        ("office", f"{scene.office}"),
        ("uart", f"{scene.line.a}"),
        ("can", f"{scene.can['interface']} {scene.can['channel']}" + (f" ({options})" if options else "")),
    ):
        tell(console, f"  {name:<7} {what}")
    say(console, "Each bus and the bridge is a process. The senders send readings of this machine.")
    if not scene.foreign:
        say(console, "(nanocat and nngcat are not installed: no peers of other projects take part.)")
    console.print()


def ledgers(texts: dict[str, str], console: Console) -> None:
    """Print the ledger of each process."""
    say(console, COUNTS)
    console.print()
    say(console, LEDGERS)
    for part, text in texts.items():
        head, *lines = text.splitlines() or ["said nothing at its end"]
        tell(console, f"{part}: {head}", "bold")
        for line in lines:
            tell(console, line)


def verdict(scene: Scene, wrong: Sequence[str], console: Console) -> None:
    """Print the faults and the log; without faults, that all is well, and how the counts fit together."""
    console.print()
    for line in wrong:
        say(console, line, "red")
    if wrong:
        return put(console, scene.log.read_text().rstrip())
    sent = sum(member.sent for member in scene.members)
    received = sum(sum(member.received.values()) for member in scene.members)
    greetings = sum(member.greetings for member in scene.members)
    all_well = f"The ledgers balance: {sent} frames sent, {received} received; each reached all others once."
    say(console, all_well, "green")
    say(
        console,
        f"The ledgers and the capture also count greetings (up to {greetings}), which were sent until all "
        "members had joined.",
    )


def next_step(capture: Path, console: Console) -> None:
    """Print how to check the capture, by the packages that are installed or that one command installs."""
    console.print()
    say(console, f"The traffic is recorded in {capture}, which stays until you remove it.")
    say(console, "Check that every frame arrived once:")
    if not (sail.installed() or jars.installed()):
        put(console, f"  {install('sail')}    # once: Sail, which reads captures, 0.3 GB")
    put(console, f"  {program()} audit {capture}{'' if jars.installed() else ' --engine sail'}")


def look(scene: Scene, page: str, console: Console) -> None:
    """Print where the page of a gateway is that runs on, and how to see a fault on it."""
    console.print()
    say(console, "The same now runs on as one gateway. Look at its page: what is up, curves, last values.")
    put(console, f"  {page}")
    say(console, "Make a fault, a second way between both buses, and see what the page says of it:")
    put(console, f"  {program()} device --dial {scene.plant} --dial {scene.office}")
    say(console, "Ctrl-C ends the demo.")
