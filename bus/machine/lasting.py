"""The time that a file of certificates lasts, and what one warns of."""

from contextlib import suppress

from bus.machine.files import PEM_BYTES, read_bytes
from bus.wire.x509 import Span, span_of_chain, span_of_trust

WARN_S = 30 * 86400.0


def span(path: str, trusted: bool) -> Span | None:
    """Return the time in which a file is valid; None if no certificate can be read. It may block.

    Of authorities that are `trusted` the last counts, of an own file the first. Who uses the file tells why
    it cannot be read.
    """
    with suppress(OSError, ValueError):
        return (span_of_trust if trusted else span_of_chain)(read_bytes(path, PEM_BYTES))
    return None


def is_valid(span: Span, now_s: float) -> bool:
    """Return whether peers take a certificate now, if their clocks are right."""
    return span.begin_s <= now_s < span.end_s


def doubt(path: str, span: Span, now_s: float) -> str:
    """Return a warning that a certificate is not valid, or ends within `WARN_S`; "" if there is none."""
    left_s = span.end_s - now_s
    if now_s < span.begin_s:
        what = f"begins on {_day(span.begin_s)}: peers refuse it until then; here it is {_day(now_s)}"
        return f"{path}: the certificate {what}: set the clock, or make another"
    if left_s >= WARN_S:
        return ""
    day = _day(span.end_s)
    what = f"ended on {day}: peers refuse it" if left_s <= 0 else f"ends in {_days(left_s)}, on {day}"
    return f"{path}: the certificate {what}: `buscoupler cert renew`"


def _day(at_s: float) -> str:
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M} UTC"


def _days(left_s: float) -> str:
    days = int(left_s // 86400)
    return "less than a day" if not days else f"{days} day{'s' * (days > 1)}"
