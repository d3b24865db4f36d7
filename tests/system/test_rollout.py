"""A roll-out over a real sshd to real gateways in namespaces: done, refused, and gone back from."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.rollout.keeper import Keeper
from tests.system.plant_of_namespaces import PROGRAM, Plant, missing, plant, wait

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(300)]
MORE = 'listen: ["tcp://HOST:5556"]'
FAST = ["--yes", "--settle", "5", "--wait", "60"]  # the shortest; a busy machine is no ill gateway


@pytest.fixture(scope="module")
def made() -> Iterator[Plant]:
    with plant(3, forked=True) as found:
        yield found


@pytest.fixture
def ready(made: Plant) -> Plant:
    """The plant with its first file everywhere, and no roll-out known."""
    for name in made.names:
        keeper = Keeper(made.file(name))
        for path in keeper.path.parent.glob(".plant.yaml.*"):
            path.unlink()
        keeper.path.write_text(made.text())
    return made


def write(made: Plant, text: str) -> Path:
    path = made.directory / "new.yaml"
    path.write_text(text)
    return path


def test_a_file_reaches_all_and_rollback_takes_it_back(ready: Plant) -> None:
    new = ready.text(MORE)
    done = ready.do("deploy", str(write(ready, new)), *FAST)
    assert done.returncode == 0, done.stderr
    assert "done: 3 gateways got the file" in done.stdout
    assert "new-g1" in done.stdout
    assert ready.files() == {new}
    assert not any(Keeper(ready.file(name)).state().trial for name in ready.names)
    assert ready.do("deploy", str(write(ready, new)), *FAST).stdout == "3 gateways had this file already\n"
    assert ready.do("rollback", str(write(ready, new)), program=PROGRAM).returncode == 0
    assert ready.files() == {ready.text()}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("buses: [", "new.yaml"),
        ('listen: [{url: "tls+tcp://HOST:5556", tls: {cert_file: /nowhere.pem}}]', "nowhere.pem"),
    ],
)
def test_what_a_gateway_refuses_changes_nothing(ready: Plant, text: str, said: str) -> None:
    whole = text if text.startswith("buses") else ready.text(text, only="g3")
    done = ready.do("deploy", str(write(ready, whole)), *FAST)
    assert done.returncode == 1
    assert said in done.stderr
    assert ready.files() == {ready.text()}


@pytest.mark.parametrize("ill", ["g1", "g3"])
def test_all_go_back_where_a_gateway_is_not_well_with_the_file(ready: Plant, ill: str) -> None:
    new = ready.text('dial: ["tcp://HOST:1"]', only=ill)
    done = ready.do("deploy", str(write(ready, new)), *FAST, "--wait", "15")
    assert done.returncode == 1
    assert "all gateways have their former file" in done.stdout
    assert f"{ill}: not well within 15 s" in done.stderr
    assert ready.files() == {ready.text()}


def test_a_change_by_hand_is_kept_unless_forced(ready: Plant) -> None:
    only = ["--gateway", "g2"]  # each step is a process there
    first = ready.do("deploy", str(write(ready, ready.text(MORE))), *FAST, *only, program=PROGRAM)
    assert first.returncode == 0
    ready.file("g2").write_text(ready.text(MORE) + "# by hand\n")
    new = write(ready, ready.text(MORE.replace("5556", "5557")))
    done = ready.do("deploy", str(new), *FAST)
    assert (done.returncode, "changed by hand" in done.stderr) == (1, True)
    assert "# by hand" in ready.file("g2").read_text()
    assert ready.do("deploy", str(new), *FAST, *only, "--force").returncode == 0
    assert ready.file("g2").read_text() == new.read_text()


def test_a_gateway_on_trial_refuses_others_and_goes_back_once_nobody_asks(ready: Plant) -> None:
    from appliance.rollout.runner import Ssh  # the first half of a roll-out, whose ssh is cut then
    from appliance.rollout.steps import Asked

    words = ready.command("deploy")
    way = Ssh({"g1": ready.address("g1")}, words[words.index("--to") + 1], words[words.index("--ssh") + 1],
              words[words.index("--program") + 1])  # fmt: skip
    keeper = Keeper(ready.file("g1"))
    answer = way.ask(Asked("apply", "g1", "1f", "somebody", ready.text(MORE), keeper.hash()))
    assert not isinstance(answer, str)
    assert (answer.error, answer.touched) == ("", True)
    done = ready.do("deploy", str(write(ready, ready.text(MORE.replace("5556", "5557")))), *FAST)
    assert (done.returncode, "somebody is on trial" in done.stderr) == (1, True)
    state = keeper.state()
    with keeper.changing():  # as if the time were over
        keeper.keep(type(state)(state.id, state.by, state.new, state.old, state.boot, time.monotonic()))
    wait(lambda: keeper.state().back)
    assert ready.files() == {ready.text()}


def test_a_gateway_that_cannot_be_reached_is_named_and_nothing_changes(ready: Plant) -> None:
    ready.kill("g2", "sshd")
    try:
        done = ready.do("deploy", str(write(ready, ready.text(MORE))), *FAST)
    finally:
        ready.serve("g2")
    assert done.returncode == 1
    assert "g2: look: ssh: connect to host" in done.stderr
    assert ready.files() == {ready.text()}
