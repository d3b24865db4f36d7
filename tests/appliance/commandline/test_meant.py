"""The words of other programs."""

from appliance.commandline.cli import commands
from appliance.commandline.meant import MEANT, TOLD


def test_each_word_is_no_command_and_means_one() -> None:
    known = commands()
    assert set(MEANT.values()) <= set(known)
    assert not {*MEANT, *TOLD} & set(known)
    assert not set(MEANT) & set(TOLD)
