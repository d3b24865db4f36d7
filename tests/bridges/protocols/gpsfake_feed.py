"""A program for Debian's own Python: a receiver of gpsfake on a pseudo-terminal. Its argument: a log.

It prints the terminal's name, and feeds the log once for each line that it reads.
"""

import sys

from gps.fake import FakePTY, TestLoad  # type: ignore[import-not-found]

load = TestLoad(sys.argv[1])
receiver = FakePTY(load, 4800)
print(receiver.byname, flush=True)
for _ in sys.stdin:
    for _ in load.sentences:
        receiver.feed()
