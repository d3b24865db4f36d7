"""Delivery of notices by a command: a program without a shell, with the values in its environment."""

import os
import signal
import subprocess
from contextlib import suppress

from appliance.alarms.notice import Notice
from appliance.alarms.outlets.outlet import Deliver
from appliance.outbox import Refused
from topologies.model.alarms import CommandSpec

_INHERITED = ("HOME", "LANG", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")


def delivery(spec: CommandSpec) -> Deliver:
    """Return the function that runs the command for a notice. A command that fails is not run again."""

    def deliver(notice: Notice) -> None:
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        environment = inherited | dict(notice.environment())
        try:
            process = subprocess.Popen(
                spec.command, env=environment, cwd="/", stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise Refused(f"{spec.command[0]}: cannot be run: {error.strerror}") from error
        _finish(process, spec)

    return deliver


def _finish(process: "subprocess.Popen[bytes]", spec: CommandSpec) -> None:
    """Wait for the end of a command. After its time, kill it with all that it started. Raises `Refused`."""
    try:
        status = process.wait(spec.timeout_s)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise Refused(f"{spec.command[0]}: was killed after {spec.timeout_s:g} s") from None
    if status:
        how = f"ended with status {status}" if status > 0 else f"was ended by signal {-status}"
        raise Refused(f"{spec.command[0]}: {how}")
