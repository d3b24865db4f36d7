"""The time that a file of certificates lasts, and how soon one warns of its end."""

from contextlib import suppress

from bus.machine.files import PEM_BYTES, read_bytes
from bus.wire.x509 import end_of_chain_s, end_of_trust_s

WARN_S = 30 * 86400.0


def end_s(path: str, trusted: bool) -> float | None:
    """Return when a file ends to be valid, in s since 1970; None if no certificate can be read. It may block.

    Of authorities that are `trusted` the last counts, of an own file the first. Who uses the file tells why
    it cannot be read.
    """
    with suppress(OSError, ValueError):
        return (end_of_trust_s if trusted else end_of_chain_s)(read_bytes(path, PEM_BYTES))
    return None


def ending(path: str, end_s: float, now_s: float) -> str:
    """Return a warning that a certificate has ended, or does within `WARN_S`; "" if it does not."""
    left_s = end_s - now_s
    if left_s >= WARN_S:
        return ""
    day = _day(end_s)
    what = f"ended on {day}: peers refuse it" if left_s <= 0 else f"ends in {_days(left_s)}, on {day}"
    return f"{path}: the certificate {what}: `buscoupler cert renew`"


def _day(at_s: float) -> str:
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M} UTC"


def _days(left_s: float) -> str:
    days = int(left_s // 86400)
    return "less than a day" if not days else f"{days} day{'s' * (days > 1)}"
