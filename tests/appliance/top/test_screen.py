"""The screen of `top`: what stays, what moves, what is filtered, and what the keys do."""

import re

import pytest

from appliance.top.keys import keys_of
from appliance.top.screen import ORDERS, Screen

TEXT = "\n".join(
    [
        "● ok", "    folded", "plant on gw-a: run, process 1, up 0:00:09", "  link   state   peers",
        "  shop | tcp://127.0.0.1:1   up", "      dropped 3 queue full", "  shop | uart   waiting",
        "▲ trouble: can:can0", "plant on gw-b: run", "  shop | can:can0   waiting", "      no such device",
    ]
)  # fmt: skip
COLUMNS = 100


def lines(screen: Screen, rows: int = 24) -> list[str]:
    return [line.rstrip() for line in screen.shown("head", TEXT, COLUMNS, rows).split("\n")]


def pressed(*keys: str, rows: int = 24) -> list[str]:
    screen = Screen(coloured=False)
    lines(screen, rows)
    for key in keys:
        screen.press(key)
    return lines(screen, rows)


def test_the_head_stays_and_the_keys_stand_at_the_foot() -> None:
    for rows in (4, 6, 24):
        shown = pressed("down", rows=rows)
        assert len(shown) == rows
        assert shown[0] == "head"
        assert "q ends" in shown[-1] or rows == 24


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_all_keys_are_named_however_long_the_filter_is(columns: int) -> None:
    screen = Screen(coloured=False)
    for filter in ("", "uart", "a" * 60):
        for key in ["/", *filter, "enter"] if filter else []:
            screen.press(key)
        shown = screen.shown("head", TEXT * 30, columns, 24).split("\n")
        assert shown[-1].rstrip().endswith("q ends, arrows move, / filters, s sorts")
        assert len(shown[-1]) == columns
        assert shown[-1].startswith("lines 1 to ")


@pytest.mark.parametrize(
    ("keys", "first"),
    [
        ((), "● ok"),
        (("down",), "    folded"),
        (("j", "j", "k"), "    folded"),
        (("up",), "● ok"),
        (("down", "down", "down", "up"), "plant on gw-a"),
        (("down", "down", "down", "page up"), "    folded"),
        (("page down",), "plant on gw-a"),
        ((" ", "b"), "● ok"),
        (("end",), "  shop | can"),
        (("G", "page down", "down"), "  shop | can"),
        (("end", "home"), "● ok"),
    ],
    ids=str,
)
def test_keys_move_within_the_text(keys: tuple[str, ...], first: str) -> None:
    assert pressed(*keys, rows=4)[1].startswith(first)


def test_a_filter_keeps_headings_and_whole_blocks() -> None:
    shown = pressed("/", *"QUEUES", "backspace", "enter")
    assert [line for line in shown[1:-1] if line] == [
        "● ok", "    folded", "plant on gw-a: run, process 1, up 0:00:09", "  link   state   peers",
        "  shop | tcp://127.0.0.1:1   up", "      dropped 3 queue full",
        "▲ trouble: can:can0", "plant on gw-b: run",
    ]  # fmt: skip
    assert "only what has QUEUE" in shown[-1]


def test_escape_leaves_the_filter_first_and_q_within_it_is_a_letter() -> None:
    screen = Screen(coloured=False)
    for key in ("/", "q", "enter"):
        screen.press(key)
    assert (screen.filter, screen.is_done) == ("q", False)
    screen.press("escape")
    assert (screen.filter, screen.is_done) == ("", False)
    for key in ("/", "x", "escape"):
        screen.press(key)
    assert (screen.filter, screen.is_done) == ("", False)
    screen.press("q")
    assert screen.is_done


def test_s_goes_through_all_orders() -> None:
    screen, found = Screen(), list[str]()
    for _ in ORDERS:
        found.append(screen.order)
        screen.press("s")
    assert tuple(found) == ORDERS
    assert screen.order == ORDERS[0]


def test_verdicts_have_colours_and_nothing_else_has() -> None:
    shown = Screen().shown("head", TEXT, COLUMNS, 24).split("\n")
    assert shown[1] == "\x1b[1;32m● ok\x1b[0m"
    assert shown[8] == "\x1b[1;31m▲ trouble: can:can0\x1b[0m"
    assert [line for line in shown[1:-1] if "\x1b" in line] == [shown[1], shown[8]]


def test_what_a_terminal_sends_becomes_keys() -> None:
    sent = "q\x1b[A\x1b[6~\x1bOH\x7f\r/ä\x1b[200~\x00\x1b"
    assert keys_of(sent) == ["q", "up", "page down", "home", "backspace", "enter", "/", "ä", "escape"]
    assert all(re.fullmatch(r"[a-z ]+|.", key) for key in keys_of(sent))
