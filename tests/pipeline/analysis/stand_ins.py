"""Two gateways that stand in for each other at a CAN bus, written by hand; one of them dies."""

from capture.schema import Verdict
from tests.pipeline.analysis.hand_made import RX, TX, Capture, frame

TAKEN_OVER, FRAMES, STEP_MS = 30, 60, 100
AGAIN = 1000
"""Added to the number of a frame that the stand-in sends again: it gives it an envelope of its own."""


def carry(
    made: Capture, number: int, of: str, ms: float, buses: str, again: bool = False, has_rows: bool = True
) -> None:
    """Carry a frame from CAN onto the buses, which a trunk joins, by the candidate of gateway `of`."""
    content, key = frame("motor", str(number)), number + AGAIN * again
    if has_rows:
        verdict = Verdict.STANDBY if again else Verdict.OK
        made.seen(ms, f"gw-{of}", "bridge field", "can", RX, content, key, verdict)
    made.seen(ms + 1, f"gw-{of}", "bridge field", f"bus {of}", TX, content, key)
    for bus in buses:
        way = TX if bus == of else RX
        made.seen(ms + 2, f"gw-{bus}", f"bus {bus}", f"bus {bus}", way, content, key)


def stood_in(cut: range, heard_twice: int = 0, has_rows: bool = True) -> Capture:
    """gw-a dies after 30 of 60 frames. The trunk had been cut for some of them: gw-b sends these again, and
    `heard_twice` more that its bus had heard. `has_rows`: recorders write what came in while a gateway stood
    by."""
    made = Capture(killed=("gw-a",))
    made.topology("gw-a", {"bus a": {"gateways": ["gw-a"], "trunks": ["bus b"]}})
    for number in range(TAKEN_OVER):
        carry(made, number, "a", STEP_MS * number, "a" if number in cut else "ab")
    for number in (*cut, *range(heard_twice)):
        carry(made, number, "b", STEP_MS * TAKEN_OVER - 50, "b", again=True, has_rows=has_rows)
    for number in range(TAKEN_OVER, FRAMES):
        carry(made, number, "b", STEP_MS * number, "b")
    return made
