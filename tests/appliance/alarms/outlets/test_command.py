"""A command gets the values by its environment, without a shell, and is killed after its time."""

import sys
from pathlib import Path

import pytest

from appliance.alarms.outlets.command import delivery
from appliance.outbox import Refused
from tests.appliance.alarms.outlets.outlet_support import NOTICE
from tests.helpers.peers import wait
from topologies.model.alarms import CommandSpec


def test_values_are_in_the_environment_and_nothing_of_a_shell_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUSCOUPLER_TOKEN", "secret")
    out = tmp_path / "out"
    code = f"import os; open({str(out)!r}, 'w').write(repr(dict(os.environ)) + os.sys.argv[1])"
    delivery(CommandSpec(command=(sys.executable, "-c", code, "$(id); `id`")))(
        NOTICE._replace(cause="$HOME\n")
    )
    text = out.read_text()
    assert "'BUSCOUPLER_ALARM': 'warm'" in text
    assert "'BUSCOUPLER_ALARM_STATE': 'raised'" in text
    assert "$HOME" in text
    assert text.endswith("$(id); `id`")
    assert "secret" not in text


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("/bin/sh", "-c", "exit 3"), "status 3"),
        (("/bin/sh", "-c", "kill -9 $$"), "signal 9"),
        (("/no/such/program",), "cannot be run"),
    ],
)
def test_a_command_that_fails_is_told_and_not_run_again(command: tuple[str, ...], words: str) -> None:
    with pytest.raises(Refused, match=words):
        delivery(CommandSpec(command=command))(NOTICE)


def test_after_its_time_it_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    child = tmp_path / "child"
    script = f"sleep 60 & echo $! > {child}; wait"
    with pytest.raises(Refused, match="killed after"):
        delivery(CommandSpec(command=("/bin/sh", "-c", script), timeout_s=0.5))(NOTICE)
    text = child.read_text() if child.exists() else ""
    wait(lambda: not text or not _is_alive(int(text)))


def _is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
