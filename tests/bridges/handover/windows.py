"""The frames that a window has for a takeover, as tests compare them."""

from collections.abc import Iterable

from bridges.handover.window import Due


def placeless(due: Iterable[Due]) -> list[Due]:
    """Return frames that are due without the sides that they came in by."""
    return [one._replace(came=-1) for one in due]
