"""No collector holds up a gateway, and each record is sent or counted by a reason."""

import asyncio
import json

import pytest

from appliance.telemetry.otlp import LOGS, TRACES, rejected, request
from appliance.telemetry.sender import WAITING, Entry, Sender
from bus.hub import Hub
from tests.appliance.telemetry.collector import collecting, fault
from tests.helpers.peers import until
from tests.helpers.ports import free_port


def made(url: str) -> Sender:
    found = Sender("t", url, None, {"service.name": "buscoupler"}, pause_s=0.01)
    found.open(Hub(), None)
    return found


@pytest.mark.parametrize(
    ("answers", "reason"),
    [([], ""), ([503, 429], ""), ([400], "refused"), ([301], "refused"), ([500], "refused")],
)
def test_what_a_collector_answers_decides(answers: list[int], reason: str) -> None:
    async def run() -> None:
        with collecting() as collector:
            collector.answers = answers
            one = made(collector.url)
            assert (one.state, one.condition) == ("up", "")  # there is nothing to say yet
            one.offer(Entry(LOGS, {"body": {"stringValue": "a"}}))
            await until(lambda: not one.stats.queued)
            assert bool(one.condition) == bool(reason)
            assert one.stats.dropped == ({reason: 1} if reason else {})
            assert one.stats.sent == len(collector.got) == (0 if reason else 1)
            assert one.state == "up"
            one.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("says", "count"),
    [
        (b'{"partialSuccess": {"rejectedLogRecords": "1", "errorMessage": "too old"}}', 1),
        (b'{"partialSuccess": {"rejectedSpans": 900}}', 900),
        (b'{"partialSuccess": {"errorMessage": "a warning"}}', 0),
        (b"{}", 0), (b"", 0), (b"thanks", 0), (b"[" * 60_000, 0), (b'{"partialSuccess": [1]}', 0),
        (b'{"partialSuccess": {"rejectedSpans": 1e999}}', 0),
        (b'{"partialSuccess": {"rejectedSpans": -1}}', 0),
    ],
)  # fmt: skip
def test_an_answer_says_what_a_collector_has_not_taken(says: bytes, count: int) -> None:
    assert rejected(says)[0] == count


def test_what_a_collector_has_not_taken_of_a_request_is_counted() -> None:
    async def run() -> None:
        with collecting() as collector:
            collector.says = b'{"partialSuccess": {"rejectedLogRecords": 1, "errorMessage": "too old"}}'
            one = made(collector.url)
            one.offer(Entry(LOGS, {"body": {"stringValue": "a"}}))
            await until(lambda: not one.stats.queued)
            assert one.stats.dropped == {"refused": 1}
            assert (one.stats.sent, one.fault) == (0, "the collector rejected 1: too old")
            one.close()

    asyncio.run(run())


def test_of_what_waits_for_a_collector_that_is_gone_each_record_is_counted() -> None:
    async def run() -> None:
        one = made(f"http://127.0.0.1:{free_port()}")
        one.offer(Entry(TRACES, {}))
        await until(lambda: one.state == "waiting")
        for _ in range(WAITING + 9):
            one.offer(Entry(TRACES, {}))
        assert one.stats.dropped == {"queue full": 10}
        assert "refused" in one.fault
        one.close()
        one.offer(Entry(TRACES, {}))
        assert one.stats.dropped == {"queue full": 10, "closed": WAITING + 1}
        assert one.stats.offered == WAITING + 11

    asyncio.run(run())


@pytest.mark.parametrize(
    ("path", "record", "good"),
    [
        (TRACES, {"traceId": "ab" * 16, "spanId": "cd" * 8, "startTimeUnixNano": "1"}, True),
        (TRACES, {"traceId": "ab" * 15}, False),
        (TRACES, {"startTimeUnixNano": "soon"}, False),
        (LOGS, {"a": 1}, False),
    ],
)
def test_the_collector_of_these_tests_takes_what_the_protocol_has(
    path: str, record: dict[str, object], good: bool
) -> None:
    assert (fault(path, json.loads(request(path, [record], {}))) == "") is good
