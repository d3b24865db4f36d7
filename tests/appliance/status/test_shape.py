"""The shape of a status: what a gateway answers fits, what other versions and others answer does not."""

import copy
import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from appliance.commands.top import local_statuses
from appliance.local.places import runtime_directory
from appliance.status.shape import fits
from appliance.status.silent import UNREADABLE, GatewayName
from tests.appliance.status.status_support import appliance, broker, lease, status_of


def full() -> dict[str, Any]:
    return status_of(appliance()) | {"brokers": [broker(lease(("gw-b", True, 40)))]}


def test_the_status_of_this_version_fits_and_may_have_more_keys() -> None:
    assert fits(full())
    assert fits(full() | {"newer": 1})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hubs", [{"name": "device", "cuts": [], "pipes": []}]),
        ("hubs", {}),
        ("links", [{}]),
        ("brokers", [None]),
        ("gateways", {"gw": 7}),
        ("events", [{"time_ns": 1 << 70, "kind": "", "source": "", "cause": "", "counts": {}}]),
        ("pid", "7"),
    ],
)
def test_what_has_no_such_shape_does_not(key: str, value: object) -> None:
    assert not fits(full() | {key: value})


def test_each_key_that_readers_rely_on_must_be_there() -> None:
    for key in full().keys() - {"certificates", "drawing", "health", "more_values", "sums", "file", "plant"}:
        less = copy.deepcopy(full())
        del less[key]
        assert not fits(less)


@pytest.mark.parametrize("answer", [b"", b"[]", b"{", b"\xff", json.dumps({"version": 1, "pid": 1}).encode()])
def test_top_says_that_it_cannot_read_an_answer(
    socket_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(socket_path.parent))
    path = runtime_directory() / "plant" / "gw-a" / "status.sock"
    path.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=reply, args=(listener, answer))
        thread.start()
        assert local_statuses(None)[1][GatewayName("plant", "gw-a")] == UNREADABLE
        thread.join()


def reply(listener: socket.socket, answer: bytes) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.sendall(answer)


def test_numbers_have_a_bound_on_both_sides() -> None:
    assert all(fits(number, int) for number in (-(1 << 62), 0, 1 << 62))
    assert not any(fits(number, int) for number in (-(1 << 62) - 1, (1 << 62) + 1))


@pytest.mark.parametrize(
    ("value", "fit"),
    [
        (1.5, True),
        (1, True),
        (2.0**62, True),
        (-(2.0**62), True),
        (2.0**63, False),
        ("1", False),
        (None, False),
    ],
)
def test_a_real_number_is_bounded_too(value: object, fit: bool) -> None:
    assert fits(value, float) is fit
