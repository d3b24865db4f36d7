"""What waits for clients: each gets its own in order, and a row for the same ones is packed once."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from devices.syndication.client import Client, Messages
from devices.syndication.waiting import Waiting
from devices.syndication.wire.messages import Form, Publication


class Somebody:
    host = "h"

    def take(self, messages: Messages) -> None: ...

    def refuse(self, why: str) -> None: ...

    def deny(self, why: str, form: Form) -> None: ...


A, B, C = Somebody(), Somebody(), Somebody()


def publication(number: int) -> Publication:
    return Publication(str(number), {}, b"\1")


def ids(messages: Messages) -> list[str]:
    return [message.id for message in messages if isinstance(message, Publication)]


def test_what_goes_to_the_same_clients_is_one_object() -> None:
    waiting = Waiting()
    for number in range(3):
        waiting.post((A, B), publication(number))
    first, second = waiting.pop(A), waiting.pop(B)
    assert first is second
    assert ids(first) == ["0", "1", "2"]
    assert first.packed(Form.UNTAGGED) is second.packed(Form.UNTAGGED)
    assert not waiting


def test_each_form_is_packed_for_itself() -> None:
    messages = Messages(map(publication, range(2)))
    for form in Form:
        assert messages.packed(form) == b"".join(message.packed(form) for message in messages)


def test_a_client_that_has_taken_gets_what_comes_later_too() -> None:
    waiting = Waiting()
    waiting.post((A, B), publication(0))
    taken = waiting.pop(A)
    taken.packed(Form.UNTAGGED)
    waiting.post((A, B), publication(1))
    assert (ids(taken), ids(waiting.pop(A)), ids(waiting.pop(B))) == (["0"], ["1"], ["0", "1"])


def test_a_client_for_which_nothing_waits_gets_nothing() -> None:
    assert list(Waiting().pop(A)) == []


some = st.sampled_from([(A,), (B,), (A, B), (B, A), (A, B, C)])
steps = st.lists(
    st.one_of(st.tuples(st.just("post"), some), st.tuples(st.just("pop"), st.sampled_from([A, B, C])))
)


@given(steps)
def test_each_client_gets_its_messages_in_order(taken: list[tuple[str, Any]]) -> None:
    waiting = Waiting()
    heard: dict[Client, list[str]] = {A: [], B: [], C: []}
    due: dict[Client, list[str]] = {A: [], B: [], C: []}
    for number, (kind, what) in enumerate(taken):
        if kind == "post":
            waiting.post(what, publication(number))
            for client in what:
                due[client].append(str(number))
        else:
            heard[what] += ids(waiting.pop(what))
            assert heard[what] == due[what]
    while waiting:
        client = waiting.first()
        heard[client] += ids(waiting.pop(client))
    assert heard == due
