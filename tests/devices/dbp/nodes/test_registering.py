"""The conversation of a service with its catalog, in virtual time."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.dbp.catalog import wire
from devices.dbp.catalog.wire import Command, Received
from devices.dbp.nodes.registering import ANSWER_S, NOTHING, RegistrationState, Step
from tests.devices.dbp.nodes.conversation import APPROVED, BEAT, DISCONNECT, listed, registers, registration


def test_it_registers_with_what_the_specification_wants() -> None:
    step = registration().open(0.0)
    assert registers(step)
    fields = json.loads(step.say[0].body[0])
    assert fields["name"] == "Rohan"
    assert fields["liveliness"] == 1000


def test_no_answer_makes_a_new_connection_after_a_time() -> None:
    made = registration()
    made.open(0.0)
    assert made.tick(ANSWER_S - 0.01) == NOTHING
    assert registers(made.tick(ANSWER_S))


def test_it_beats_once_in_each_interval_while_it_is_answered() -> None:
    made = listed()
    beats = 0
    for step in range(1, 81):
        now_s = step / 8
        done = made.tick(now_s)
        beats += done.beat
        assert not done.say
        if done.beat:
            made.datagram(BEAT, now_s)
    assert beats == 10


def test_a_missed_answer_leads_to_tcp_and_a_catalog_that_is_silent_to_a_new_connection() -> None:
    made, said = listed(), list[tuple[float, Step]]()
    for step in range(1, 100):
        done = made.tick(step / 8)
        if done != NOTHING:
            said.append((step / 8, done))
        if done.renew:
            break
    over_tcp = [at_s for at_s, done in said if done.say and done.say[0].word == wire.HEARTBEAT]
    assert over_tcp[0] == 2.0
    assert len(over_tcp) >= 3
    assert registers(said[-1][1])
    assert 5 <= said[-1][0] <= 6
    assert made.state is RegistrationState.ASKING


def test_an_acknowledged_beat_over_tcp_is_life() -> None:
    made = listed()
    made.tick(2.0)
    made.heard(Received(wire.ACKNOWLEDGED, False), 2.1)
    assert made.tick(3.0).say == ()
    assert made.state is RegistrationState.LISTED


def test_the_interval_of_the_catalog_holds() -> None:
    made = registration()
    made.open(0.0)
    made.heard(Received(wire.APPROVED, False, fields={"liveliness": 250.0}), 0.0)
    assert made.interval_s == 0.25
    assert made.tick(0.25).beat
    made.heard(Received(wire.ACKNOWLEDGED, False, fields={"liveliness": 1e-9}), 0.0)
    assert made.interval_s == 0.01


@pytest.mark.parametrize("by_udp", [True, False])
def test_a_disconnect_makes_it_register_on_a_new_connection(by_udp: bool) -> None:
    made = listed()
    step = made.datagram(BEAT._replace(word=wire.DISCONNECT), 1.0) if by_udp else made.heard(DISCONNECT, 1.0)
    assert registers(step)


def test_disconnects_that_are_forged_cost_one_registration_an_interval() -> None:
    made = listed()
    count = 0
    for step in range(400):
        now_s = step / 100
        count += registers(made.heard(DISCONNECT, now_s))
        count += registers(made.tick(now_s))
        made.heard(APPROVED, now_s)
    assert count <= 5


def test_a_denial_says_its_reasons_and_is_tried_again_with_longer_pauses() -> None:
    made = registration()
    made.open(0.0)
    now_s, tries = 0.0, list[float]()
    for _ in range(4):
        made.heard(Received(wire.DENIED, False, ("name taken: a living service has the name",)), now_s)
        assert made.state is RegistrationState.DENIED
        assert made.reasons == ("name taken: a living service has the name",)
        while not registers(made.tick(now_s)):
            now_s += 0.25
        tries.append(now_s)
    pauses = [b - a for a, b in zip([0.0, *tries], tries, strict=False)]
    assert pauses == [1, 2, 4, 8]


def test_an_update_is_said_and_its_answer_returned() -> None:
    made = listed()
    step = made.update({"topics": ["x"]}, 1.0)
    assert [(c.word, json.loads(c.body[0])) for c in step.say] == [
        (wire.UPDATE, {"topics": ["x"], "name": "Rohan"})
    ]
    assert made.heard(Received(wire.ACKNOWLEDGED, False), 1.1).answer == ()
    assert made.heard(Received(wire.DENIED, False, ("no",)), 1.2).answer == ("no",)
    assert json.loads(made.heard(DISCONNECT, 2.0).say[0].body[0])["topics"] == ["x"]


def test_who_is_not_listed_says_an_update_with_its_registration() -> None:
    made = registration()
    made.open(0.0)
    assert made.update({"topics": ["x"]}, 1.0) == Step(answer=())
    assert json.loads(made.tick(ANSWER_S).say[0].body[0])["topics"] == ["x"]


def test_it_leaves_by_a_disconnect_and_says_nothing_more() -> None:
    made = listed()
    assert made.close() == Step(say=(Command(wire.DISCONNECT, (b"Rohan",)),))
    assert made.close() == NOTHING
    assert made.tick(100.0) == made.heard(DISCONNECT, 100.0) == made.datagram(BEAT, 100.0) == NOTHING


def test_a_ping_over_the_connection_is_answered() -> None:
    assert listed().heard(Received(wire.PING, False), 0.5).say == (Command(wire.PONG, (b"Rohan",)),)


HEARD = st.builds(
    Received,
    st.sampled_from([wire.APPROVED, wire.DENIED, wire.DISCONNECT, wire.ACKNOWLEDGED, wire.PING, wire.PONG]),
    st.just(False),
    st.sampled_from([(), ("Rohan",), ("Mordor",)]),
    st.sampled_from([{}, {"liveliness": 0}, {"liveliness": "x"}, {"liveliness": 50.0}, {"liveliness": True}]),
)


@given(
    st.lists(st.tuples(st.floats(0, 3), st.sampled_from(["tick", "heard", "datagram"]), HEARD), max_size=60)
)
def test_whatever_comes_it_registers_again_in_the_end(script: list[tuple[float, str, Received]]) -> None:
    made, now_s = registration(), 0.0
    made.open(now_s)
    for passed_s, how, heard in script:
        now_s += passed_s
        match how:
            case "tick":
                made.tick(now_s)
            case "heard":
                made.heard(heard, now_s)
            case _:
                made.datagram(heard, now_s)
    for _ in range(4000):
        now_s += made.interval_s / 8
        if registers(made.tick(now_s)):
            return
        now_s += 0.05
    raise AssertionError("it never registers again")
