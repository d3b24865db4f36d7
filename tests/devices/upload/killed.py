"""An uploader that is killed while it works (tests.helpers.steps)."""

import json
import os
from collections.abc import Callable

from capture.stores import Directory
from devices.upload import spool
from devices.upload.uploader import Settings, Uploader
from tests.helpers.steps import told


def uploading(settings: str, step: Callable[[], None]) -> None:
    """Upload all that is there, with a step before and after a file is taken, stored or noted."""
    for owner, name in ((os, "link"), (spool.Spool, "_forget"), (spool.Spool, "done"), (Directory, "put")):
        told(owner, name, step)
    one = Uploader(Settings(**json.loads(settings)))
    assert one.spool.open()
    one.spool.look()
    one.storing.wake.set()
    one.storing.work()
