"""The words of other programs."""

from contextlib import suppress

import pytest

from appliance.commandline.cli import commands, main
from appliance.commandline.meant import MEANT, TOLD
from appliance.commands.explain import chosen


def test_each_word_is_no_command_and_means_one() -> None:
    known = commands()
    assert set(MEANT.values()) <= set(known)
    assert not {*MEANT, *TOLD} & set(known)
    assert not set(MEANT) & set(TOLD)


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("start", 'did you mean "run"?'),
        ("status", 'did you mean "top"?'),
        ("list", 'did you mean "top"?'),
        *((word, "a side of a bridge") for word in ("mqtt", "modbus", "canopen", "uart", "can", "i2c")),
        ("stop", "Ctrl-C"),
    ],
)
def test_a_wrong_word_gets_the_right_one(word: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with suppress(SystemExit):
        main([word])
    assert told in capsys.readouterr().err


def test_a_link_is_chosen_by_its_letters_too() -> None:
    names = ["bus p: listen tcp://127.0.0.1:5", "bridge j: uart/RS-485 /dev/ttyS0"]
    assert chosen(names, "rs485", names) == 1
    assert chosen(names, "RS-485", names) == 1
