"""Notices, and outlets that are open."""

from appliance.alarms.notice import Notice
from appliance.alarms.outlets.outlet import Deliver, ThreadOutlet
from bus.hub import Hub

NOTICE = Notice(
    "plant",
    "gw-a",
    "warm",
    "fridge/1",
    "raised",
    3,
    "critical",
    "too warm",
    "9 is above 8",
    "gw-a",
    "2026-11-27",
)


def opened(deliver: Deliver) -> tuple[ThreadOutlet, list[tuple[Notice, bool]]]:
    """Return an outlet that is open and tries again at once, and the list of notices that are through,
    each with whether it was delivered."""
    through = list[tuple[Notice, bool]]()
    outlet = ThreadOutlet("o", "x:", deliver, lambda *one: through.append(one), pause_s=0.001)
    outlet.open(Hub(), None)
    return outlet, through
