"""The form of a time for people: that of the log, with the date and the zone of this machine."""

import time


def stamp(time_s: float, fraction: str = "") -> str:
    """Return a time since 1970 as local time with its offset: `2026-11-27T17:03:21+0100`.

    `fraction` stands behind the seconds.
    """
    moment = time.localtime(time_s)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', moment)}{fraction}{time.strftime('%z', moment)}"


def zone_s(time_s: float) -> int:
    """Return by how many seconds local time is ahead of UTC at a time since 1970."""
    return time.localtime(time_s).tm_gmtoff
