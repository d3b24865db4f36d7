"""Numbers of datagrams on the air: each comes once, whatever the air doubles and disorders."""

import pickle
import random

from bridges.media.ieee802154.numbering import NUMBER, RECENT, SENDERS_MAX, Inbound, Outbound
from bridges.media.multicast.datagram import Decoder, with_crc
from bus.wire.frame import pack

PLAIN = with_crc(pack(2, (0x11223344, 0x55667788), b"hello"))


def heard(*numbers: int, sender: str = "a", inbound: Inbound | None = None) -> list[bool]:
    """Return for each number whether a datagram with it is let in."""
    made = Inbound({}) if inbound is None else inbound
    return [bool(made.opened([(numbered(number), sender)])) for number in numbers]


def numbered(number: int) -> bytes:
    return Outbound(number).numbered(PLAIN)


def test_the_example_of_the_page() -> None:
    on_air = numbered(0x1F40)
    assert on_air.hex() == "1f4002020005112233445566778868656c6c6f" + on_air[-4:].hex()
    assert on_air[-4:].hex() == "73fb7a59"
    assert Inbound({}).opened([(on_air, "a")]) == [(PLAIN, "a")]


def test_numbers_go_up_only_with_what_was_sent_and_begin_anew_behind_the_last() -> None:
    outbound = Outbound(0xFFFF)
    assert outbound.numbered(PLAIN) == outbound.numbered(PLAIN) == numbered(0xFFFF)
    outbound.sent()
    assert outbound.numbered(PLAIN)[: NUMBER.size] == b"\0\0"


def test_a_number_comes_once_in_any_order() -> None:
    assert heard(5, 5, 7, 6, 6, 7, 5) == [True, False, True, True, False, False, False]
    assert heard(0xFFFE, 0xFFFF, 0, 1, 0xFFFF, 0) == [True] * 4 + [False] * 2
    inbound = Inbound({})
    assert heard(3, inbound=inbound) + heard(3, sender="b", inbound=inbound) == [True, True]


def test_a_sender_that_began_anew_is_heard_at_once() -> None:
    for first in (0, 30_000, 40_000, 65_535 - RECENT):
        assert heard(*range(1000, 1010), first, first + 1, first + 1)[-3:] == [True, True, False]


def test_all_orders_within_the_window_are_heard_once_each() -> None:
    chance = random.Random(3)
    for _ in range(50):
        start = chance.randrange(65_536)
        numbers = [(start + n) % 65_536 for n in range(200)]
        late = sorted(range(400), key=lambda at: at // 2 + chance.randrange(RECENT // 2))
        assert sum(heard(*(numbers[at // 2] for at in late))) == 200


def test_what_is_kept_of_a_sender_does_not_grow() -> None:
    inbound = Inbound({})
    heard(*range(1000, 1200), inbound=inbound)
    before = len(pickle.dumps(inbound))
    heard(*range(1200, 2000), inbound=inbound)
    assert len(pickle.dumps(inbound)) == before


def test_senders_are_bounded_and_the_one_that_was_silent_longest_goes() -> None:
    inbound = Inbound({})
    for sender in range(SENDERS_MAX + 1):
        heard(1, sender=str(sender), inbound=inbound)
    assert heard(1, sender=str(SENDERS_MAX), inbound=inbound) == [False]
    assert heard(1, sender="0", inbound=inbound) == [True]


def test_what_is_damaged_is_left_to_the_decoder_and_a_double_is_counted() -> None:
    rejected: dict[str, int] = {}
    inbound, decoder = Inbound(rejected), Decoder(rejected)
    whole = numbered(9)
    bent = bytes((whole[0] ^ 1, *whole[1:]))
    opened = inbound.opened([(bent, "a"), (b"", "a"), (b"abc", "a"), (whole, "a"), (whole, "a")])
    batch = decoder.feed(opened, 0.0)
    assert batch is not None
    assert batch.count == 1
    assert rejected == {"crc": 1, "short": 2, "duplicate": 1}
    short = with_crc(b"x"), "a"
    assert inbound.opened([short, short]) == [short, short]
