"""The rules of a side of a bridge, as a record. Pure."""

from typing import Final, NamedTuple

from bridges.judge import Judge
from bridges.rules import Patterns

STEP_S: Final = 0.04
"""The time for which a frame is held back on a shared trunk, for each sender that comes before."""


class Policy(NamedTuple):
    """The rules of a side: which messages pass, in which form and when.

    `trunk`: messages leave in envelopes. `allow` and `deny` are patterns that hold both ways; `allow_in` and
    `deny_in` are added to them for frames that come in from this side, `allow_out` and `deny_out` for frames
    that go out to it. An empty `allow` lets every frame through.

    `opaque`: the side carries any message, as a bus does; otherwise only frames pass. An opaque message
    matches no pattern: a side with patterns to allow keeps it out, and patterns to deny do not.

    `hold_s`: on a trunk that other appliances share, wait so many seconds before sending, and drop the
    message if another appliance sends it meanwhile. A message waits while another appliance is there, and
    with `hold_always` in any case. `deaf`: a standby does not hear on this side what the active bridge sends.
    `replay_s`: at a takeover only what is younger leaves here, and nothing older than what came out; None
    for no such limit, 0 for nothing at all. `judge`: what may pass, where patterns cannot say it; the link
    holds frames to it, and the window asks. `anew`: what comes in has a form that each gateway makes anew, so
    at a takeover nothing of it is sent from before. `stops_in_doubt`: nothing leaves while no broker confirms
    the lease. `answers`: each command that leaves has a result, so after a takeover those of before have one.
    `late`: what waited in a journal leaves here too (`bus.lateness`); else only by pipes that know
    how old it is.
    """

    trunk: bool = False
    allow: Patterns = ()
    deny: Patterns = ()
    allow_in: Patterns = ()
    deny_in: Patterns = ()
    allow_out: Patterns = ()
    deny_out: Patterns = ()
    opaque: bool = False
    hold_s: float = 0.0
    hold_always: bool = False
    deaf: bool = False
    replay_s: float | None = None
    judge: Judge | None = None
    stops_in_doubt: bool = False
    late: bool = False
    anew: bool = False
    answers: bool = False


PASS_ALL = Policy()
