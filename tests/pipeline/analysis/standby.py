"""A plant whose standby took over, written by hand."""

from capture.schema import Verdict
from tests.pipeline.analysis.hand_made import RX, TX, Capture, frame

HALL, CAN, LINE = "bus hall", "can can0", "uart tty"
FRAMES, STEP_MS = 240, 10.0
TAKEN_OVER = range(100, 112)
"""The frames that came in the silence of a takeover: the standby had heard them, and sent them at its end."""


class Plant:
    """Two candidates for the bridge `field` between CAN and the hall, and a line behind the hall, whose rows
    have no envelope, as on serial lines and MQTT. `has_rows`: recorders write what came in while a gateway
    stood by. `equal`: so many readings there are, of which each comes again and again."""

    def __init__(self, has_rows: bool, equal: int = 0) -> None:
        self.made, self.has_rows = Capture(), has_rows
        topology = {
            "bridge field": {"gateways": ["gw-a", "gw-b"], "sides": [{"segment": HALL}, {"segment": CAN}]}
        }
        for gateway in ("gw-a", "gw-b"):
            self.made.topology(gateway, topology)
        for number in range(FRAMES):
            content = frame("motor", str(number % equal if equal else number))
            self.carry(number, content)

    def carry(self, number: int, content: bytes) -> None:
        at_ms = number * STEP_MS
        is_replayed = number in TAKEN_OVER
        gateway = "gw-a" if number < TAKEN_OVER.start else "gw-b"
        if is_replayed:
            at_ms = TAKEN_OVER.stop * STEP_MS - 5 + (number - TAKEN_OVER.start) / 100
        if not is_replayed or self.has_rows:
            verdict = Verdict.STANDBY if is_replayed else Verdict.OK
            self.made.seen(at_ms, gateway, "bridge field", CAN, RX, content, number, verdict)
        self.made.seen(at_ms + 0.001, gateway, "bridge field", HALL, TX, content, number)
        self.onto_line(at_ms, content, number)

    def onto_line(self, at_ms: float, content: bytes, number: int) -> None:
        self.made.seen(at_ms + 0.2, "gw-b", "bridge line", HALL, RX, content, number)
        self.made.seen(at_ms + 0.3, "gw-b", "bridge line", LINE, TX, content)
