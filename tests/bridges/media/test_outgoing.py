"""What leaves by a wire with a protocol: messages that a translator holds, and requests of its own."""

from collections.abc import Sequence

from bridges.media.outgoing import Outgoing
from bridges.media.shedding import Shed
from bridges.protocols.modbus.protocol import Modbus, Register
from bridges.protocols.translator import Sent, Translator, Wire
from bus.ledger import Stats
from tests.bridges.protocols.spoken_support import message, told


class Holding(Translator[bytes]):
    """A translator that holds each message until it is settled."""

    asks = True

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        self.held: list[bytes] = []

    def receive(self, items: Sequence[bytes], now_s: float) -> list[bytes]:
        return []

    def send(self, message: bytes, now_s: float) -> Sent[bytes]:
        self.held.append(message)
        return Sent(held=True)

    def give_up(self) -> list[bytes]:
        given, self.held = self.held, []
        return given


MESSAGES = [b"\1\0\0\0" + bytes(n) for n in range(4)]


def held() -> tuple[Outgoing, Holding, Stats]:
    stats = Stats()
    translator = Holding(Wire("test", "bytes", stats))
    made = Outgoing(stats, Shed(), translator)
    stats.offered += len(MESSAGES)
    made.put(MESSAGES, 0.0)
    assert made.head(64, 0.0, lambda _: 0.0) == b""
    assert translator.held == MESSAGES
    return made, translator, stats


def test_a_held_message_is_queued_until_it_is_settled() -> None:
    made, translator, stats = held()
    assert (stats.queued, stats.sent, stats.balance()) == (4, 0, 0)
    translator.settled += [(len(MESSAGES[0]), ""), (len(MESSAGES[1]), "stale")]
    made.settle_held()
    assert (stats.queued, stats.sent, stats.dropped, stats.balance()) == (2, 1, {"stale": 1}, 0)
    assert translator.settled == []


def test_what_is_held_is_given_back_with_the_rest() -> None:
    made, translator, stats = held()
    translator.settled.append((len(MESSAGES[0]), ""))
    translator.held.pop(0)
    assert made.purge("fenced") == MESSAGES[1:]
    assert (stats.queued, stats.sent, stats.dropped, stats.balance()) == (0, 1, {"fenced": 3}, 0)


def test_a_request_that_has_not_begun_can_be_taken_back() -> None:
    made, _, _ = held()
    made.say([b"first"])
    made.retract()
    assert made.head(64, 0.0, lambda _: 0.0) == b""
    made.say([b"second"])
    made.head(64, 0.0, lambda _: 0.0)
    made.settle(2)
    made.say([b"third"])
    made.retract()
    assert made.head(64, 0.0, lambda _: 0.0) == b"cond"


class Asking(Holding):
    """A translator that writes each message, and holds it until an answer comes."""

    def send(self, message: bytes, now_s: float) -> Sent[bytes]:
        return super().send(message, now_s)._replace(items=[message])


def test_a_message_that_is_written_and_held_is_queued_until_it_is_settled_or_given_up() -> None:
    stats = Stats()
    translator = Asking(Wire("test", "bytes", stats))
    made = Outgoing(stats, Shed(), translator)
    stats.offered += len(MESSAGES)
    made.put(MESSAGES, 0.0)
    assert made.head(64, 0.0, lambda _: 0.0) == b"".join(MESSAGES)
    made.settle(len(MESSAGES[0]) + 1)
    assert (stats.queued, stats.sent) == (4, 0)
    translator.settled.append((len(translator.held.pop(0)), ""))
    made.settle_held()
    assert (stats.queued, stats.sent) == (3, 1)
    assert made.purge("fenced") == MESSAGES[1:]
    assert (stats.queued, stats.dropped, stats.balance()) == (0, {"fenced": 3}, 0)
    assert made.head(64, 0.0, lambda _: 0.0) == MESSAGES[1][1:]  # it has begun, and is finished


def test_the_age_of_a_command_counts_from_when_it_came_also_where_it_waits_in_the_queue() -> None:
    stats = Stats()
    record = Modbus(
        registers=(Register(register=0, pattern=("m",), write=True, low=0, high=9, read=False),), age_ms=1000
    )
    translator = record.translator(Wire("test", "bytes", stats))
    made = Outgoing(stats, Shed(rate=0.5), translator)
    translator.advance(0.0)
    stats.offered += 2
    made.put([message("m/set", b"1"), message("m/set", b"2")], 1.0)
    written, said = list[bytes](), list[bytes]()
    for now_s in (1.0, 1.5, 3.0, 3.5):
        made.head(64, now_s, lambda _: 0.0)
        turn = translator.advance(now_s)
        written += turn.items
        said += turn.messages
        for item in turn.items:  # the device confirms
            said += translator.take([item], now_s)
        made.settle_held()
    assert [item[-1] for item in written] == [1]
    results = [data for _, data in told(said, "m", "result")]
    assert results == [b"done", b"refused: it waited longer than 1000 ms"]
    assert (stats.sent, stats.dropped, stats.balance()) == (1, {"stale": 1}, 0)
