"""Rounds of looks: one after the other, in turns of the loop, whatever happens in one of them."""

import asyncio
import logging
from collections.abc import Iterator

import pytest

from appliance.rounds import Rounds
from tests.helpers.peers import until


class Looks:
    """Looks of three steps each. One of them is `defect`."""

    def __init__(self, defect: int = -1) -> None:
        self.steps = list[tuple[int, int]]()
        self.begun, self._defect = 0, defect

    def look(self, now_s: float) -> Iterator[None]:
        number, self.begun = self.begun, self.begun + 1
        for step in range(3):
            self.steps.append((number, step))
            if number == self._defect:
                raise ValueError
            yield


async def test_a_look_begins_at_once_and_goes_on_in_later_turns_of_the_loop() -> None:
    looks = Looks()
    rounds = Rounds(looks.look, 3600.0)
    rounds.open(asyncio.get_running_loop())
    assert looks.steps == [(0, 0)]
    await until(lambda: len(looks.steps) == 3)
    rounds.close()
    assert looks.begun == 1


async def test_a_defect_ends_its_look_and_the_next_one_comes(caplog: pytest.LogCaptureFixture) -> None:
    looks = Looks(defect=1)
    rounds = Rounds(looks.look, 0.0)
    rounds.open(asyncio.get_running_loop())
    await until(lambda: looks.begun == 3, passes=True)
    rounds.close()
    assert [step for number, step in looks.steps if number == 1] == [0]
    assert [one.levelno for one in caplog.records] == [logging.ERROR]


async def test_a_look_that_is_given_up_is_followed_by_a_whole_one() -> None:
    looks = Looks()
    rounds = Rounds(looks.look, 3600.0)
    rounds.begin_anew()  # before it is open, there is none
    rounds.open(asyncio.get_running_loop())
    rounds.begin_anew()
    await until(lambda: len(looks.steps) == 4)
    rounds.begin_anew()  # nor after its end
    rounds.close()
    assert looks.steps == [(0, 0), (1, 0), (1, 1), (1, 2)]
