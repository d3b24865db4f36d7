"""Where devices keep files that survive a restart, if their settings do not say it."""

import os
from pathlib import Path


def state_directory() -> Path:
    """Return the directory of this user for such files. It may not exist."""
    given = os.environ.get("XDG_STATE_HOME", "")
    home = os.path.expanduser("~/.local/state")
    if given.startswith("/"):  # others are to be ignored, as the standard says
        return Path(f"{given}/buscoupler")
    if os.geteuid() == 0 or not home.startswith("/"):
        return Path("/var/lib/buscoupler")
    return Path(f"{home}/buscoupler")
