"""Packets whose status is awaited: each has a frame id of its own, and none waits for ever."""

from math import inf

from bridges.protocols.xbee.pending import Packet, Pending


def test_frame_ids_are_1_to_255_and_none_is_given_twice() -> None:
    pending = Pending(2)
    kept = pending.add(Packet(b"kept", "a", 9.0))
    given = list[int]()
    for _ in range(600):
        given.append(pending.add(Packet(b"", "b", 1.0)))
        assert pending.take(given[-1]) is not None
    assert set(given) == set(range(1, 256)) - {kept}
    assert given[:254] == given[254:508]


def test_what_waits_is_bounded_and_ends_in_time() -> None:
    pending = Pending(2)
    assert (pending.due_s, pending.is_full) == (inf, False)
    packets = [Packet(b"1", "a", 1.0), Packet(b"2", "b", 2.0)]
    first, second = map(pending.add, packets)
    assert (pending.due_s, pending.is_full) == (1.0, True)
    assert pending.expired(1.5) == packets[:1]
    assert (pending.take(first), pending.take(second), len(pending)) == (None, packets[1], 0)
    pending.add(packets[0])
    assert (pending.clear(), len(pending)) == (packets[:1], 0)
