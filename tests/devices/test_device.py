"""Where devices of a user keep files for the time after a restart, and what most of them do not record."""

import pytest

from devices.cache.device import CacheSpec
from devices.device import state_directory


@pytest.mark.parametrize(
    ("user", "home", "given", "directory"),
    [
        (1000, "/home/u", "", "/home/u/.local/state"),
        (1, "/home/d", "", "/home/d/.local/state"),
        (1000, "/home/u", "/s", "/s"),
        (1000, "/home/u", "relative", "/home/u/.local/state"),
        (1000, "relative", "", "/var/lib"),
        (0, "/root", "", "/var/lib"),
        (0, "/root", "/s", "/s"),
    ],
)
def test_files_are_in_the_state_directory_of_the_user_or_of_the_system(
    user: int, home: str, given: str, directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    monkeypatch.setenv("HOME", home)
    monkeypatch.setenv("XDG_STATE_HOME", given)
    assert str(state_directory()) == f"{directory}/buscoupler"


def test_a_device_records_no_wires_unless_it_says_so() -> None:
    assert not CacheSpec(on="gw", cache=("p",)).records_wires
