"""Noise becomes a state once there is enough of it, or once it is late, and ends when a message comes."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.noise import Ear, Noise

EAR = Ear(sure=256, most=3000, few=16, slow_s=3.0)
WORDS = "{} bytes, none a frame: another baud rate or protocol?"


def test_what_is_surely_no_message_is_told_once_and_ends_with_a_message() -> None:
    noise = Noise(EAR)
    assert not noise.hear(0.0, 255, 0, 255)
    assert noise.hear(0.1, 1, 0, 1)
    assert noise.words == WORDS.format(256)
    assert not noise.hear(0.2, 5000, 0, 5000)
    assert noise.words == WORDS.format(256)
    assert noise.hear(0.3, 20, 1)
    assert (noise.words, noise.count) == ("", 0)


@pytest.mark.parametrize(
    ("seems", "words"),
    [
        ("", "another baud rate or protocol (bytes such as 61 62 63 64 65 66 67 68)?"),
        ("no LF: another baud rate or protocol", "rate or protocol (bytes such as 61 62 63 64 65 66 67 68)?"),
        ("lines of text: `protocol: lines`", "lines of text: `protocol: lines`?"),
    ],
)
def test_input_that_is_like_nothing_is_shown(seems: str, words: str) -> None:
    noise = Noise(Ear(likeness=lambda _: seems))
    noise.hear(0.0, 256, 0, 256, b"abcdefghijk")
    assert noise.words.endswith(words)


def test_what_is_known_to_be_noise_only_later_is_counted_and_shown_with_what_came_before() -> None:
    noise = Noise(EAR)
    noise.hear(0.0, 300, 1, 0, b"abcdefgh")
    noise.hear(0.1, 40, 0, 0, b"ijklmnop")
    assert noise.hear(0.2, 0, 0, 290)  # a connection ended, and what it said was no message
    assert noise.words == WORDS.format(290).replace("?", " (bytes such as 69 6a 6b 6c 6d 6e 6f 70)?")


@pytest.mark.parametrize(("size", "told"), [(3000, False), (3001, True)])
def test_more_than_a_message_takes_is_noise(size: int, told: bool) -> None:
    noise = Noise(EAR)
    assert noise.hear(0.0, size, 0) == told
    assert bool(noise.words) == told


@pytest.mark.parametrize(("size", "at_s", "told"), [(16, 3.0, True), (15, 3.0, False), (16, 2.9, False)])
def test_a_little_is_noise_when_it_is_late(size: int, at_s: float, told: bool) -> None:
    noise = Noise(EAR)
    noise.hear(0.0, size, 0)
    assert noise.due_s == 3.0
    assert noise.look(at_s) == told
    assert bool(noise.words) == told


def test_text_that_comes_in_drops_adds_up() -> None:
    noise, told = Noise(EAR), list[float]()
    for second in range(60):
        noise.hear(float(second), 2, 0)
        if noise.due_s <= second and noise.look(float(second)):
            told.append(float(second))
    assert told == [7.0]


def test_the_rest_of_a_message_that_was_cut_is_no_noise_until_it_is_opened_again() -> None:
    noise = Noise(EAR)
    noise.hear(0.0, 40, 1)
    noise.hear(1.0, 40, 0)
    assert noise.due_s == inf
    noise.renew()
    noise.hear(2.0, 1, 0)
    assert noise.due_s == 5.0
    assert noise.look(5.0)


@given(st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 1), st.floats(0, 5)), max_size=50))
def test_it_changes_by_turns_and_ends_with_each_message(heard: list[tuple[int, int, float]]) -> None:
    noise, now = Noise(EAR), 0.0
    for size, messages, pause_s in heard:
        now += pause_s
        before = bool(noise.words)
        changed = noise.look(now)
        assert bool(noise.words) == (before != changed)
        before = bool(noise.words)
        assert noise.hear(now, size, messages, size) == (before != bool(noise.words))
        assert not (messages and noise.words)
