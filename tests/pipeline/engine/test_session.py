"""A client looks for a Connect server that has gone for half a minute, not for Spark's ten; for ten seconds
if it says nothing from the start."""

import socket
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("grpc")

from pipeline.engine import session
from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql.connect.client.retries import RetryPolicy

MOST_MS: Final = 30_000


class Client:
    """The part of a client that keeps its policies."""

    def __init__(self) -> None:
        self.policies: list[RetryPolicy] = []

    def set_retry_policies(self, policies: "list[RetryPolicy]") -> None:
        self.policies = policies


def waits_ms(policy: "RetryPolicy") -> list[int]:
    """Return how long a client waits before each try."""
    state, found = policy.to_state(), list[int]()
    while (wait_ms := state.next_attempt()) is not None:
        found.append(wait_ms)
    return found


def test_all_tries_to_reach_a_server_again_are_over_within_half_a_minute() -> None:
    client = Client()
    session.try_again(SimpleNamespace(client=client), session.TRIES)
    (policy,) = client.policies
    found = waits_ms(policy)
    assert len(found) == session.TRIES
    assert 10_000 < sum(found) < MOST_MS


def test_without_tries_nothing_is_tried_again() -> None:
    client = Client()
    session.try_again(SimpleNamespace(client=client), session.TRIES)
    session.try_again(SimpleNamespace(client=client), 0)
    assert client.policies == []


def test_a_server_that_accepts_and_says_nothing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "ANSWER_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        remote = f"sc://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(PipelineError, match=f"^{remote}: it accepts, but does not answer within 0 s$"):
            session.check_answers(remote)
