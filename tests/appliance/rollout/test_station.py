"""A step of a roll-out on a gateway: a process that does not answer is named, with the reason."""

import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from appliance.local.places import runtime_directory
from appliance.rollout.keeper import Keeper, hash_of
from appliance.rollout.station import Station, guard
from appliance.rollout.steps import STEPS, Asked


def test_why_there_is_no_status_of_a_process_is_said(
    socket_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(socket_path.parent))
    there = runtime_directory() / "plant" / "gw-a"
    there.mkdir(parents=True)
    killed, ends = there / "status-a.sock", there / "status-b.sock"
    with socket.socket(socket.AF_UNIX) as left, socket.socket(socket.AF_UNIX) as listener:
        left.bind(str(killed))  # and nobody listens
        listener.bind(str(ends))
        listener.listen()
        thread = threading.Thread(target=lambda: listener.accept()[0].close())
        thread.start()
        word, line = Station(str(tmp_path / "plant.yaml"), "gw-a").health()
        thread.join()
    assert word == "absent"
    assert line == f"no process of gw-a answers here; {ends}: its process ended, or is too busy to answer"


class Bare(Station):
    """A gateway without processes and without a guard."""

    def __init__(self, file: str, gateway: str) -> None:
        super().__init__(file, gateway)
        self.file = file

    def _guard(self, name: str) -> None:
        pass

    def _reload(self) -> list[str]:
        return []

    def health(self) -> tuple[str, str]:
        return "ok", "ok"


def test_a_file_that_two_gateways_share_by_other_names_of_a_host_is_told(tmp_path: Path) -> None:
    file = tmp_path / "plant.yaml"
    file.write_text("old")
    stations = {name: Bare(str(file), name) for name in ("gw-a", "gw-b")}
    old = {name: one.do(Asked("look", name, "1", "me", "new")).hash for name, one in stations.items()}
    first, second = [
        one.do(Asked("apply", name, "1", "me", "new", old[name])) for name, one in stations.items()
    ]
    assert (first.error, first.touched) == ("", True)
    assert "{gateway} in --to" in second.error
    assert not second.touched


def test_a_file_there_that_is_too_long_is_told(tmp_path: Path) -> None:
    file = tmp_path / "plant.yaml"
    file.write_bytes(bytes((1 << 20) + 1))
    assert (
        "more than 1048576 bytes" in Bare(str(file), "gw-a").do(Asked("look", "gw-a", "1", "me", "new")).error
    )


@pytest.mark.timeout(20)
def test_a_guard_ends_when_the_directory_of_its_topology_has_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("appliance.rollout.station._GUARD_S", 0.0)
    guard(str(tmp_path / "gone" / "plant.yaml"), "gw", "1")


OfStation = TypeVar("OfStation", bound=Bare)


class Killed(BaseException):
    """A process that is killed within a step."""


class Guarded(Bare):
    """A gateway that notes its guards."""

    guards: tuple[str, ...] = ()

    def _guard(self, name: str) -> None:
        self.guards += (name,)


def rolled_out(directory: Path, kind: type[OfStation]) -> tuple[Path, OfStation]:
    """Return the file of a gateway, in which a roll-out put `second` for `first`, and its station."""
    file = directory / "plant.yaml"
    station = kind(str(file), "gw")
    file.write_text("first")
    for step in ("look", "apply", "confirm"):
        assert station.do(Asked(step, "gw", "1", "me", "second", hash_of(b"first"))).error == ""
    return file, station


@pytest.mark.parametrize("cut", range(5))
def test_a_step_that_is_killed_at_any_write_leaves_what_goes_back_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    file, station = rolled_out(tmp_path, Guarded)
    asked = Asked("apply", "gw", "2", "me", "third", hash_of(b"second"))
    with monkeypatch.context() as patch:
        left = iter([*[lambda path, data: path.write_bytes(data)] * cut, killed])
        for name in ("put", "replace_bytes"):
            patch.setattr(f"appliance.rollout.keeper.{name}", lambda path, data: next(left)(path, data))
        with pytest.raises(Killed):
            station.do(asked)
    assert station.guards[-1] == "2"
    monkeypatch.setattr("appliance.rollout.keeper.boot_id", lambda: "a later start")
    assert station.expire("2")
    assert file.read_text() == "second"
    station.do(Asked("back", "gw"))
    assert file.read_text() == "first"
    assert station.do(Asked("look", "gw", "3", "me", "third")).error == ""


def killed(*_: object) -> None:
    raise Killed


class Refusing(Guarded):
    """A gateway whose reload of the third file fails."""

    def _reload(self) -> list[str]:
        return ["no"] if self._keeper.path.read_text() == "third" else []


def reboot(station: Bare, patch: pytest.MonkeyPatch) -> None:
    with patch.context() as started:
        started.setattr("appliance.rollout.keeper.boot_id", lambda: "a later start")
        assert Keeper(station.file).end_trial() == "me"


def expire(station: Bare, patch: pytest.MonkeyPatch) -> None:
    with patch.context() as later:
        later.setattr("appliance.rollout.keeper.boot_id", lambda: "a later start")
        assert station.expire("2")


def next_comes(station: Bare, patch: pytest.MonkeyPatch) -> None:
    """Let the trial be over, and a next roll-out begin before its guard looks."""
    with patch.context() as later:
        later.setattr("appliance.rollout.keeper.boot_id", lambda: "a later start")
        assert station.do(Asked("look", "gw", "3", "me", "fourth")).error == ""


FAILURES: dict[str, tuple[type[Guarded], Callable[[Bare, pytest.MonkeyPatch], object]]] = {
    "it is told to go back": (Guarded, lambda one, _: one.do(Asked("back", "gw", "2"))),
    "it is told so twice": (Guarded, lambda one, _: [one.do(Asked("back", "gw", "2")) for _ in "12"]),
    "its reload fails": (Refusing, lambda one, _: one.do(Asked("back", "gw", "2"))),
    "nobody confirms": (Guarded, expire),
    "its machine starts again": (Guarded, reboot),
    "the next one comes": (Guarded, next_comes),
}


@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize("failure", FAILURES)
def test_after_a_roll_out_that_failed_one_can_go_back_from_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str, forced: bool
) -> None:
    """There was `no roll-out to go back from`."""
    kind, fail = FAILURES[failure]
    file, station = rolled_out(tmp_path, kind)
    present = "second"
    if forced and failure != "the next one comes":
        file.write_text(present := "by hand")
    for step in ("look", "apply"):
        asked = Asked(step, "gw", "2", "me", "third", hash_of(present.encode()), force=True)
        station.do(asked)
    fail(station, monkeypatch)
    assert file.read_text() == present
    assert "has gone back" in station.do(asked).error
    assert station.do(Asked("back", "gw", by="me", force=True)).error == ""
    assert file.read_text() == ("first" if present == "second" else present)
    assert [one.name for one in tmp_path.iterdir() if one.name.endswith(".last")] == []


def test_who_is_told_often_to_go_back_forgets_no_other(tmp_path: Path) -> None:
    file, station = tmp_path / "plant.yaml", Guarded(str(tmp_path / "plant.yaml"), "gw")
    file.write_text("first")
    for name in ("early", *["again"] * 20):
        station.do(Asked("back", "gw", name))
    late = station.do(Asked("apply", "gw", "early", "me", "second", hash_of(b"first")))
    assert "has gone back" in late.error
    assert file.read_text() == "first"


@pytest.mark.parametrize("cut", range(3))
def test_a_way_back_that_is_killed_at_any_write_is_gone_to_its_end_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    file, station = tmp_path / "plant.yaml", Guarded(str(tmp_path / "plant.yaml"), "gw")
    file.write_text("first")
    for number, text, old in (("1", "second", b"first"), ("2", "third", b"second")):
        for step in ("look", "apply", "confirm")[: 4 - int(number)]:
            assert station.do(Asked(step, "gw", number, "me", text, hash_of(old))).error == ""
    with monkeypatch.context() as patch:
        left = iter([*[lambda path, data: path.write_bytes(data)] * cut, killed])
        for name in ("put", "replace_bytes"):
            patch.setattr(f"appliance.rollout.keeper.{name}", lambda path, data: next(left)(path, data))
        with pytest.raises(Killed):
            station.do(Asked("back", "gw", "2"))
    station.do(Asked("back", "gw", "2"))
    assert file.read_text() == "second"
    assert station.do(Asked("back", "gw", by="me")).error == ""
    assert file.read_text() == "first"


@pytest.mark.parametrize("late", STEPS)
@pytest.mark.parametrize("before", [("look",), ("look", "apply"), ("look", "apply", "health")])
def test_a_step_that_comes_after_its_roll_out_went_back_changes_nothing(
    tmp_path: Path, before: tuple[str, ...], late: str
) -> None:
    """As where SSH is cut behind a request, and the machine there is slow."""
    file, station = tmp_path / "plant.yaml", Guarded(str(tmp_path / "plant.yaml"), "gw")
    file.write_text("first")
    for number, text in enumerate(("first", "second")):
        for step in (*before, "back", late):
            station.do(Asked(step, "gw", str(number), "me", "third", hash_of(text.encode())))
        assert file.read_text() == text
        assert not Keeper(file).state().trial
        for step in ("look", "apply", "confirm"):
            asked = Asked(step, "gw", f"{number} later", "me", "second", hash_of(text.encode()))
            assert station.do(asked).error == ""
        assert file.read_text() == "second"


def test_of_a_roll_out_that_never_came_what_was_changed_by_hand_is_known(tmp_path: Path) -> None:
    file, station = rolled_out(tmp_path, Guarded)
    file.write_text("by hand")
    assert station.do(Asked("back", "gw", "2", "me")).error == ""
    assert "by hand" in station.do(Asked("look", "gw", "3", "me", "third")).error
    station.do(Asked("apply", "gw", "4", "me", "third", hash_of(b"by hand"), force=True))
    station.do(Asked("back", "gw", "3", "me"))
    assert Keeper(file).state().trial


def test_a_roll_out_that_never_came_keeps_nobody_from_going_back_from_the_last_one(tmp_path: Path) -> None:
    file, station = rolled_out(tmp_path, Guarded)
    for step in ("look", "back"):
        assert station.do(Asked(step, "gw", "2", "me", "third")).error == ""
    assert station.do(Asked("back", "gw", by="me")).error == ""
    assert file.read_text() == "first"


def test_a_roll_out_that_never_came_is_refused_after_the_trial_of_another(tmp_path: Path) -> None:
    file, station = tmp_path / "plant.yaml", Guarded(str(tmp_path / "plant.yaml"), "gw")
    file.write_text("first")
    asked = Asked("apply", "gw", "2", "other", "third", hash_of(b"first"))
    for name, step in (("1", "look"), ("1", "apply"), ("2", "back"), ("1", "back")):
        assert station.do(Asked(step, "gw", name, "me", "second", asked.old)).error == ""
    assert "has gone back" in station.do(asked).error
    assert file.read_text() == "first"


def test_a_guard_of_an_older_version_knows_what_is_on_trial(tmp_path: Path) -> None:
    """It reads no state with a key that it does not know, and would let the trial go on for good."""
    file, station = tmp_path / "plant.yaml", Guarded(str(tmp_path / "plant.yaml"), "gw")
    file.write_text("first")
    for step in ("look", "apply", "health"):
        assert station.do(Asked(step, "gw", "1", "me", "second", hash_of(b"first"))).error == ""
    known = {"id", "by", "new", "old", "boot", "until_s", "back"}
    assert json.loads((tmp_path / ".plant.yaml.rollout").read_text()).keys() <= known
