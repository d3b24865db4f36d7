"""The gateway's end of the I2C mailbox in the hands of a test; times are exact in binary."""

from bridges.media.i2c.mailbox_controller import POLL, Access, Controller
from bridges.media.i2c.mailbox_segments import Timing
from tests.bridges.support import frame

POLL_S, IDLE_S, RESEND_S, STALL_S, REST_S = 2.0**-4, 4.0, 0.5, 2.0, 8.0
TICK_S = 2.0**-20
SHORT, LONG = frame(20), frame(40)  # in one segment, and in two


def controller() -> Controller:
    return Controller(Timing(POLL_S, IDLE_S, RESEND_S, STALL_S, REST_S))


def answer(mail: Controller, now: float, ctl: int, size: int = 0) -> None:
    """Let the controller poll, as it must now, and read this."""
    assert mail.next(now) == POLL
    assert mail.done(now, bytes((ctl, size))) is None


def wrote(mail: Controller, now: float, data: bytes) -> bool:
    """Tell whether the controller writes just this now, data, n and ctl; it succeeds."""
    right = mail.next(now) == Access(0x1E + 2 - len(data), 0, data)
    assert mail.done(now) is None
    return right


def linked(now: float = 0.0, epoch: int = 1) -> Controller:
    mail = controller()
    answer(mail, now, epoch - 1)
    mail.done(now)
    answer(mail, mail.due_s, mail._epoch)  # noqa: SLF001
    return mail


def quiet(until: float = 16.0) -> Controller:
    """Return a linked controller that rests, last polled at `until`."""
    mail = linked()
    for now in (1.0, until):
        mail.due_s = now
        answer(mail, now, 1)
    assert mail.due_s == until + IDLE_S
    return mail


def segment(flags: int, data: bytes) -> bytes:
    return data + bytes((len(data), flags))
