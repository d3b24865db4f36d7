from hypothesis import given
from hypothesis import strategies as st

from bridges.media.uart.echo import EchoCanceller


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
