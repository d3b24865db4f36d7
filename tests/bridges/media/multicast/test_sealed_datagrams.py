"""Datagrams with seals: how long they may be, what is read of them, and what they are without."""

from zlib import crc32

import pytest

from bridges.media.multicast.datagram import RESIDUE, Decoder, Encoder, is_plain, opened, size_at, with_crc
from bridges.media.seals import Seals
from bus.keys import Keyring
from bus.wire.batch import from_payloads, payloads
from tests.bridges.support import FRAME, MESSAGE, frame


def seals(sender: int, rejected: dict[str, int] | None = None) -> Seals:
    counts = {} if rejected is None else rejected
    return Seals(Keyring((bytes(32),)), "multicast", sender, lambda: 1.7e9, counts, is_plain=is_plain)


def encoder(datagram_bytes: int = 1400) -> Encoder:
    return Encoder(datagram_bytes, origin=1, sequence=0, seals=seals(1))


def heard(datagrams: list[bytes], rejected: dict[str, int] | None = None) -> list[bytes]:
    batch = Decoder(rejected).feed(opened([(one, "peer") for one in datagrams], seals(2, rejected)), 0.0)
    return payloads(batch) if batch else []


def sealed(messages: list[bytes], datagram_bytes: int = 1400) -> list[bytes]:
    made = encoder(datagram_bytes).encode(from_payloads(messages))
    assert sum(count for _, count in made) == len(messages)
    return [datagram for datagram, _ in made]


@pytest.mark.parametrize("datagram_bytes", [37, 100, 1400])
def test_a_seal_takes_18_bytes_of_a_datagram(datagram_bytes: int) -> None:
    made = encoder(datagram_bytes)
    assert made.room == datagram_bytes - 18 - 4
    for messages in ([MESSAGE], [FRAME] * 50, [frame(size) for size in (4, 300, 20, 3072)]):
        datagrams = sealed(messages, datagram_bytes)
        assert all(len(one) <= datagram_bytes and crc32(one) == RESIDUE for one in datagrams)
        assert heard(datagrams) == messages


def test_no_sealed_datagram_is_shorter_than_37_bytes() -> None:
    with pytest.raises(ValueError, match="at least 37, not 36"):
        encoder(36)


def test_a_datagram_is_filled_to_the_byte() -> None:
    messages = [frame(37)] * 4
    for datagram_bytes, expected in ((4 * 37 + 22, [170]), (4 * 37 + 21, [133, 59])):
        assert [len(one) for one in sealed(messages, datagram_bytes)] == expected


def test_without_its_seal_it_is_as_it_would_be_without_keys() -> None:
    made, bare = encoder(), Encoder(1400 - 18, origin=1, sequence=0)
    batch = from_payloads([FRAME, MESSAGE, frame(3000)])
    without = [made.plain(datagram) for datagram, _ in made.encode(batch)]
    assert without == [datagram for datagram, _ in bare.encode(batch)]
    assert bare.plain(without[0]) == without[0]


def test_what_is_damaged_or_not_sealed_does_not_count() -> None:
    (good,) = sealed([FRAME])
    rejected = dict[str, int]()
    assert (
        heard([good[:-1] + bytes((good[-1] ^ 1,)), with_crc(FRAME), with_crc(b"x" * 40), b""], rejected) == []
    )
    assert rejected == {"crc": 1, "unsigned": 1, "forged": 1, "short": 1}
    assert heard([good, good]) == [FRAME]


def test_a_datagram_of_a_crc_alone_is_short() -> None:
    rejected = dict[str, int]()
    assert heard([with_crc(b"")], rejected) == []
    assert rejected == {"forged": 1}


def test_what_would_be_messages_without_a_seal() -> None:
    assert is_plain(FRAME)
    assert is_plain(FRAME + MESSAGE)
    assert not is_plain(b"")
    assert not is_plain(FRAME + b"x")
    assert not is_plain(b"\xe1\x10" + MESSAGE[2:])


def test_the_size_of_a_message_without_flags() -> None:
    for hops, size in ((0, len(MESSAGE)), (15, len(MESSAGE)), (16, 0), (0x80, 0)):
        data = b"xyz" + MESSAGE[:1] + bytes((hops,)) + MESSAGE[2:]
        assert size_at(data, 3, len(data)) == size
    assert size_at(MESSAGE, 0, len(MESSAGE) - 1) == 0
    assert size_at(b"\1\x11\0\0" + bytes(68), 0, 72) == 72, "tokens of a frame are no flags"
