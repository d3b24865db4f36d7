"""Framings: what SP puts before a message, and an encoder that serves many peers with one result."""

from bus.transports.framing import Framing, Once, sp_framing
from bus.wire.batch import Batch, from_payloads
from bus.wire.handshake import Greeting
from bus.wire.sp import Decoder, add_lead


def test_a_batch_is_encoded_once_however_many_peers_get_it() -> None:
    encoded = list[Batch]()

    def encode(batch: Batch) -> tuple[bytes, int]:
        encoded.append(batch)
        return batch.keep().upper(), batch.count

    once, first, second = Once(encode), from_payloads([b"a", b"b"]), from_payloads([b"c"])
    for batch in (first, first, second, second, first):
        assert once(batch) == (batch.keep().upper(), batch.count)
    assert encoded == [first, second, first]


def test_sp_has_a_length_before_each_message_and_a_lead_over_ipc() -> None:
    batch = from_payloads([b"one", b"", b"three"])
    for ipc, wire, head_bytes in ((False, batch.keep(), 8), (True, add_lead(batch), 9)):
        framing = sp_framing(1000, ipc)
        assert framing.head_bytes == head_bytes
        assert framing.handshake is Greeting
        assert framing.divide is not None
        assert [body for _, body in framing.divide(wire)] == [b"one", b"", b"three"]
        assert (framing.encode(batch) if framing.encode else (wire, 3)) == (wire, 3)


def test_a_framing_by_default_has_nothing_before_a_message_and_no_handshake() -> None:
    framing = Framing(lambda _: Decoder(bytearray(100), 50))
    assert (framing.head_bytes, framing.handshake, framing.encode, framing.divide) == (0, None, None, None)
    assert (framing.unfit, framing.lost) == ("malformed", "framing")
