"""An outlet delivers each notice once, tries again after faults, and counts what it drops."""

import threading

import pytest

from appliance.alarms.notice import Notice
from appliance.alarms.outlets.outlet import TRIED_S, WAITING, ThreadOutlet
from appliance.health.concerns import of_links
from appliance.outbox import Refused
from appliance.status.health import Concern
from appliance.status.rows import LinkRow
from bus.hub import Hub
from tests.appliance.alarms.outlets.outlet_support import NOTICE, opened
from tests.helpers.peers import wait


def test_after_faults_it_is_delivered_once_and_in_order() -> None:
    got, faults = list[int](), [OSError("gone"), ValueError("odd")]

    def deliver(notice: Notice) -> None:
        if faults:
            raise faults.pop()
        got.append(notice.number)

    outlet, through = opened(deliver)
    for number in range(3):
        assert outlet.offer(NOTICE._replace(number=number))
    wait(lambda: len(through) == 3)
    assert got == [0, 1, 2]
    assert (outlet.state, outlet.losses, outlet.fault, outlet.stats.sent) == ("up", 1, "", 3)
    outlet.close()


def test_what_is_refused_is_dropped_counted_and_told() -> None:
    answers = ["", "the webhook answered 404"]

    def deliver(notice: Notice) -> None:
        if answer := answers.pop():
            raise Refused(answer)

    outlet, through = opened(deliver)
    assert (outlet.state, outlet.condition) == ("up", "")
    outlet.offer(NOTICE)
    wait(lambda: through)
    assert through == [(NOTICE, False)]
    assert outlet.stats.dropped == {"refused": 1}
    assert outlet.fault == outlet.condition == "the webhook answered 404"
    row = LinkRow(Hub("alarms"), "pager", outlet)
    assert list(of_links([row], ())) == [Concern("degraded", "alarms/pager", "the webhook answered 404")]
    outlet.offer(NOTICE)
    wait(lambda: len(through) == 2)
    assert through[1] == (NOTICE, True)
    assert list(of_links([row], ())) == []  # it takes notices again
    outlet.close()


def test_what_waited_its_hour_behind_another_is_tried_once_more_and_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The hour of each begins when it is offered."""
    now_s, tried = [0.0], list[int]()
    monkeypatch.setattr("appliance.outbox.time.monotonic", lambda: now_s[0])

    def deliver(notice: Notice) -> None:
        tried.append(notice.number)
        now_s[0] = TRIED_S
        raise OSError("gone")

    outlet, through = opened(deliver)
    for number in range(2):
        outlet.offer(NOTICE._replace(number=number))
    wait(lambda: len(through) == 2)
    assert tried == [0, 1]
    assert outlet.stats.dropped == {"refused": 2}
    outlet.close()


def test_one_that_hangs_has_a_bounded_queue_and_an_end() -> None:
    hangs = threading.Event()

    def deliver(notice: Notice) -> None:
        hangs.wait(60)

    outlet, _ = opened(deliver)
    assert all(outlet.offer(NOTICE) for _ in range(WAITING))
    assert not outlet.offer(NOTICE)
    assert outlet.stats.dropped == {"queue full": 1}
    outlet.close()
    outlet.close()
    assert not outlet.offer(NOTICE)
    hangs.set()
    assert outlet.stats.balance() == 0
    assert outlet.stats.dropped == {"queue full": 1, "closed": WAITING + 1}


def test_one_that_was_not_opened_takes_nothing() -> None:
    outlet = ThreadOutlet("o", "x:", lambda notice: None, lambda *_: None)
    assert not outlet.offer(NOTICE)
