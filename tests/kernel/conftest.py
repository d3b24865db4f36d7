"""What is in `guest/` needs the kernel drivers of the virtual machine: nobody collects it elsewhere."""

import os

from tests.kernel.machine import IN_GUEST

collect_ignore_glob = [] if IN_GUEST in os.environ else ["guest/*"]
