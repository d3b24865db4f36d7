from hypothesis import given
from hypothesis import strategies as st

from bridges.media.uart.codec import Decoder, encode
from bridges.media.uart.echo import EchoCanceller, without_echo
from tests.bridges.support import FRAME, MESSAGE


def test_what_was_sent_is_expected_back_once() -> None:
    echoes = EchoCanceller()
    echoes.sent(b"A", 1.0)
    assert not echoes.heard(b"B", 0.1)
    assert echoes.heard(b"A", 0.2)
    assert not echoes.heard(b"A", 0.3)


def test_an_echo_that_does_not_come_is_given_up() -> None:
    echoes = EchoCanceller()
    echoes.sent(b"A", 1.0)
    echoes.sent(b"A", 2.0)
    assert not echoes.heard(b"B", 1.5)
    assert (echoes.lost, len(echoes)) == (1, 1)
    assert echoes.heard(b"A", 2.0)
    assert not echoes.heard(b"A", 2.0)


def test_a_foreign_equal_before_an_earlier_echo_costs_nothing() -> None:
    echoes = EchoCanceller()
    echoes.sent(b"A", 9)
    echoes.sent(b"B", 9)
    passed = [message for message in (b"B", b"A", b"B") if not echoes.heard(message, 1)]
    assert passed == [b"B"]
    assert echoes.lost == 0


def test_a_damaged_echo_is_counted_and_a_later_equal_is_foreign() -> None:
    echoes = EchoCanceller()
    echoes.sent(b"A", 9)
    echoes.sent(b"B", 9)
    echoes.garbled()
    assert echoes.heard(b"B", 1)
    assert echoes.lost == 1
    assert not echoes.heard(b"A", 1)


def test_garbage_with_nothing_expected_is_forgotten() -> None:
    echoes = EchoCanceller()
    echoes.garbled(5)
    echoes.sent(b"A", 9)
    echoes.sent(b"B", 9)
    assert echoes.heard(b"B", 1)
    assert echoes.heard(b"A", 1)


def test_as_many_earlier_echoes_are_lost_as_runs_were_damaged() -> None:
    echoes = EchoCanceller()
    assert (len(echoes), echoes.lost) == (0, 0)
    for message in (b"A", b"B", b"C", b"D", b"E"):
        echoes.sent(message, 9)
    echoes.garbled(2)
    assert echoes.heard(b"D", 1)
    assert (len(echoes), echoes.lost) == (2, 2)
    assert echoes.heard(b"E", 1), "of the damaged runs none is left, so C may still come"
    assert echoes.heard(b"C", 1)
    assert echoes.lost == 2


def test_no_more_runs_can_have_been_echoes_than_are_expected() -> None:
    echoes = EchoCanceller()
    echoes.sent(b"A", 9)
    echoes.garbled(7)
    assert echoes.heard(b"A", 1)
    for message in (b"B", b"C"):
        echoes.sent(message, 9)
    assert echoes.heard(b"C", 1)
    assert (len(echoes), echoes.lost) == (1, 0)


def test_an_echo_that_is_given_up_was_one_of_the_damaged_runs() -> None:
    echoes = EchoCanceller()
    echoes.sent(b"A", 1)
    for message in (b"B", b"C"):
        echoes.sent(message, 9)
    echoes.garbled()
    echoes.expire(2)
    assert echoes.heard(b"C", 2)
    assert (len(echoes), echoes.lost) == (1, 1)
    echoes.sent(b"D", 9)
    echoes.garbled(2)
    assert echoes.heard(b"D", 2)
    assert (len(echoes), echoes.lost) == (0, 2)


def test_each_echo_that_is_given_up_was_one_damaged_run() -> None:
    echoes = EchoCanceller()
    echoes.sent(b"A", 1)
    for message in (b"B", b"C", b"D"):
        echoes.sent(message, 9)
    echoes.garbled(2)
    echoes.expire(2)
    assert echoes.heard(b"D", 2)
    assert (len(echoes), echoes.lost) == (1, 2)


def test_our_own_are_taken_out_of_what_is_decoded_and_counted() -> None:
    assert without_echo(Decoder(), encode(FRAME), None, 0) == [FRAME]
    decoder, echoes = Decoder(), EchoCanceller()
    for message in (MESSAGE, FRAME, FRAME):
        echoes.sent(message, 9)
    assert without_echo(decoder, b"\0noise" + encode(FRAME) + encode(MESSAGE), echoes, 1) == [MESSAGE]
    assert (decoder.rejected, echoes.lost) == ({"cobs": 1, "echo": 1}, 1)
    assert without_echo(decoder, encode(FRAME) + encode(FRAME), echoes, 1) == [FRAME]
    assert without_echo(decoder, encode(FRAME), echoes, 1) == [FRAME]
    assert (decoder.rejected, echoes.lost) == ({"cobs": 1, "echo": 2}, 1)
    for message in (MESSAGE, FRAME):
        echoes.sent(message, 9)
    assert without_echo(decoder, encode(FRAME), echoes, 1) == []
    assert (len(echoes), echoes.lost) == (1, 1), "no run was damaged since"


def test_bounded() -> None:
    echoes = EchoCanceller()
    for n in range(10_000):
        echoes.sent(b"%d" % n, 9)
    assert len(echoes) == 4096
    assert echoes.lost == 10_000 - 4096


letters = st.sampled_from([b"A", b"B", b"C"])


@given(st.lists(st.tuples(letters, st.booleans())), st.data())
def test_counted(line: list[tuple[bytes, bool]], data: st.DataObject) -> None:
    """On a line without loss, as many of each message pass as others sent, in any order of arrival."""
    echoes, passed = EchoCanceller(), list[bytes]()
    ours = [message for message, own in line if own]
    sent = heard = 0
    for message, own in line:
        if own and sent == heard:
            ahead = data.draw(st.integers(1, len(ours) - sent))
            for mine in ours[sent : sent + ahead]:
                echoes.sent(mine, 9)
            sent += ahead
        heard += own
        if not echoes.heard(message, 1):
            passed.append(message)
    assert sorted(passed) == sorted(message for message, own in line if not own)
    assert echoes.lost == len(echoes) == 0
