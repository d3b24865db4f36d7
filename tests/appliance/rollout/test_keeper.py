"""The files of a roll-out: a gateway that starts after a reboot goes back from a trial, or says why not."""

import time
from pathlib import Path

import pytest

from appliance.commands.run import end_trial
from appliance.rollout.keeper import Keeper, State, boot_id, hash_of
from appliance.rollout.steps import HOLD_S

NEW, OLD = b"name: new\n", b"name: old\n"


def on_trial(directory: Path, boot: str) -> Keeper:
    """Return the files of a gateway that got a new topology, in a start of its machine."""
    file = directory / "plant.yaml"
    file.write_bytes(OLD)
    keeper = Keeper(file)
    until_s = time.monotonic() + HOLD_S
    keeper.try_out(NEW, State("1f", "me", hash_of(NEW), hash_of(OLD), boot, until_s))
    return keeper


def test_a_trial_ends_with_the_start_of_the_machine_in_which_it_began(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keeper = on_trial(tmp_path, "another start")
    end_trial(str(keeper.path))
    assert keeper.path.read_bytes() == OLD
    assert (keeper.state().back, keeper.state().trial) == (True, False)
    assert "went back from the roll-out of me, which nobody confirmed" in caplog.text
    assert keeper.end_trial() == ""


def test_one_that_goes_on_is_left_alone_and_so_is_a_file_that_was_changed_by_hand(tmp_path: Path) -> None:
    keeper = on_trial(tmp_path, boot_id())
    assert (keeper.end_trial(), keeper.path.read_bytes()) == ("", NEW)
    keeper = on_trial(tmp_path, "another start")
    keeper.path.write_bytes(b"by hand")
    assert (keeper.end_trial(), keeper.path.read_bytes()) == ("me", b"by hand")


def test_where_it_cannot_go_back_it_says_so_and_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keeper = on_trial(tmp_path, "another start")
    keeper.before.unlink()
    end_trial(str(keeper.path))
    assert "was not confirmed, and the file before cannot be put back" in caplog.text


def test_without_a_roll_out_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "plant.yaml").write_bytes(OLD)
    end_trial(str(tmp_path / "plant.yaml"))
    end_trial("-")
    assert [one.name for one in tmp_path.iterdir()] == ["plant.yaml"]
