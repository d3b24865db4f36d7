"""Every reason to drop a message or reject input is documented on a page."""

import re

from tests.helpers import ROOT

COUNTED = re.compile(r"""\b_?(?:drop|reject|settle|forget|purge|clear)\([^()]*?"([a-z][a-z ]*)\"""")


def test_every_reason_is_explained() -> None:
    code = [
        *ROOT.glob("bridges/**/*.py"),
        *ROOT.glob("bus/transports/*.py"),
        ROOT / "bus" / "watch" / "watched.py",
    ]
    reasons = {reason for path in code for reason in COUNTED.findall(path.read_text())}
    assert {"empty", "queue full", "unconfirmed", "fragment length"} <= reasons
    pages = "".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    assert reasons - set(re.findall(r"`([a-z][a-z ]*)`", pages)) == set()
