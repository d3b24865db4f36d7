"""Every reason to drop a message or reject input is documented on a page."""

import re

from tests.helpers import ROOT

COUNTED = re.compile(
    r"""\b_?(?:drop|reject|settle|forget|purge|clear|none|take|Unreadable)\([^()]*?"([a-z][a-z ]{0,24})\"|"""
    r"""\b(?:why|reason)="([a-z][a-z ]{0,24})\""""
)


def test_every_reason_is_explained() -> None:
    code = [
        *ROOT.glob("bridges/**/*.py"),
        *ROOT.glob("bus/transports/*.py"),
        ROOT / "bus" / "watch" / "watched.py",
    ]
    reasons = {max(found) for path in code for found in COUNTED.findall(path.read_text())}
    assert {"empty", "queue full", "unconfirmed", "fragment length"} <= reasons
    pages = "".join(path.read_text() for path in ROOT.glob("docs/**/*.md"))
    assert reasons - set(re.findall(r"`([a-z][a-z ]{0,24})`", pages)) == set()
