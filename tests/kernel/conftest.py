"""Tests in `guest/` need the kernel drivers of the virtual machine, so pytest collects them only there."""

import os

from tests.kernel.machine import IN_GUEST

collect_ignore_glob = [] if IN_GUEST in os.environ else ["guest/*"]
