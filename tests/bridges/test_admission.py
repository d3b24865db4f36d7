"""Admission of single messages: what each kind is told by, and in which order the reasons are looked for."""

import pytest

from bridges.admission import BARE, Admission, hops_of
from bridges.rules import Rule, Rules
from bus.ledger import Stats
from bus.wire.envelope import HOPS_MAX, OPAQUE, Envelope, wrap
from bus.wire.frame import DATA_BYTES_MAX, pack

OWN = 0xB
HIGH = 0x80000001
FRAME, OTHER = pack(1, (7, 1), b"x"), pack(1, (8,))
OF_OPAQUE = HOPS_MAX + 1
REFUSED = -1


class Side:
    """An admission that notes the keys it is asked for, and which came without hops left."""

    def __init__(
        self, pattern: tuple[int, ...] = (), opaque: bool = True, trunk: bool = False, known: bool = False
    ) -> None:
        self.asked: list[tuple[int, bool]] = []
        self.known = known
        rules = Rules(Rule([pattern] if pattern else []))
        self.admission = Admission(OWN, rules, self.is_new, opaque, trunk, self.is_new_spent)

    def is_new(self, key: int) -> bool:
        self.asked.append((key, False))
        return not self.known

    def is_new_spent(self, key: int) -> bool:
        self.asked.append((key, True))
        return not self.known

    def judge(self, message: bytes, before: int = 3, behind: bytes = b"") -> tuple[int, list[str]]:
        """Return what is said of a message within a batch, and the reasons that are counted for it."""
        stats = Stats()
        hops = hops_of(bytes(before) + message + behind, before, before + len(message), self.admission, stats)
        assert set(stats.rejected.values()) <= {1}
        return hops, list(stats.rejected)


@pytest.mark.parametrize("hops", [1, 8, HOPS_MAX])
@pytest.mark.parametrize("behind", [b"", bytes(40)], ids=["last", "followed"])
@pytest.mark.parametrize(
    "frame", [FRAME, pack(1, ()), pack(1, range(255), bytes(DATA_BYTES_MAX))], ids=["", "smallest", "largest"]
)
def test_a_frame_in_its_envelope_enters_with_its_hops_and_is_known_by_origin_and_sequence(
    frame: bytes, behind: bytes, hops: int
) -> None:
    side = Side(opaque=False, trunk=True)
    assert side.judge(wrap(frame, Envelope(HIGH, 2, hops)), behind=behind) == (hops, [])
    assert side.asked == [(HIGH << 32 | 2, False)]


@pytest.mark.parametrize(("content", "base"), [(FRAME, 0), (b"hello", OF_OPAQUE), (b"", OF_OPAQUE)])
def test_what_has_no_hops_left_is_remembered_apart(content: bytes, base: int) -> None:
    side = Side()
    assert side.judge(wrap(content, Envelope(HIGH, 2, 0))) == (base, [])
    assert side.judge(wrap(content, Envelope(HIGH, 2, 1))) == (base + 1, [])
    assert side.asked == [(HIGH << 32 | 2, True), (HIGH << 32 | 2, False)]


def test_who_does_not_remember_them_apart_remembers_all_alike() -> None:
    asked = list[int]()
    admission = Admission(OWN, Rules(), lambda key: not asked.append(key))  # type: ignore[func-returns-value]
    message = wrap(FRAME, Envelope(1, 2, 0))
    assert hops_of(message, 0, len(message), admission, Stats()) == 0
    assert asked == [1 << 32 | 2]


@pytest.mark.parametrize("hops", [1, 8, HOPS_MAX])
@pytest.mark.parametrize("content", [b"hello", b"", b"\xe1", bytes(3), bytes(5000)])
def test_an_opaque_message_in_its_envelope_is_told_by_numbers_above_all_hops(
    content: bytes, hops: int
) -> None:
    side = Side(trunk=True)
    assert side.judge(wrap(content, Envelope(HIGH, 2, hops))) == (OF_OPAQUE + hops, [])
    assert side.asked == [(HIGH << 32 | 2, False)]


def test_an_opaque_message_without_envelope_is_told_by_a_number_of_its_own() -> None:
    assert BARE > OF_OPAQUE + HOPS_MAX
    assert BARE & HOPS_MAX == 0
    side = Side(trunk=True)
    assert side.judge(b"hello") == side.judge(b"") == (BARE, [])
    assert side.asked == []


def changed(message: bytes, at: int, byte: int) -> bytes:
    return message[:at] + bytes((byte,)) + message[at + 1 :]


ENVELOPED = wrap(FRAME, Envelope(1, 2))
NO_ENVELOPE = {
    "another first byte": changed(ENVELOPED, 0, 0xE2),
    "a third byte that frames may have": changed(ENVELOPED, 2, 0x0F),
}
ODD_ENVELOPE = {
    "flags": changed(ENVELOPED, 1, 0x18),
    "flags before an opaque message": changed(wrap(b"hello", Envelope(1, 2)), 1, 0x18),
    "another length": changed(ENVELOPED, 3, ENVELOPED[3] + 1),
    "a byte too many": ENVELOPED + b"x",
    "a byte too few": ENVELOPED[:-1],
    "the length of a frame, but none": changed(wrap(b"hello", Envelope(1, 2)), 3, 5),
    "a frame that is called opaque": OPAQUE.to_bytes(2, "big").join([ENVELOPED[:2], ENVELOPED[4:]]),
    "a byte more than a frame can have": changed(
        changed(wrap(pack(1, (), bytes(2048)), Envelope(1, 2)), 3, 5), 15, 1
    )
    + b"x",
}


@pytest.mark.parametrize("message", ODD_ENVELOPE.values(), ids=ODD_ENVELOPE)
def test_what_only_begins_as_an_envelope_is_malformed_on_a_trunk_and_elsewhere_an_opaque_message(
    message: bytes,
) -> None:
    assert Side(trunk=True).judge(message) == (REFUSED, ["malformed"])
    assert Side(opaque=False).judge(message) == (REFUSED, ["malformed"])
    assert Side().judge(message) == (BARE, [])


@pytest.mark.parametrize("message", NO_ENVELOPE.values(), ids=NO_ENVELOPE)
def test_what_does_not_begin_as_an_envelope_is_an_opaque_message_everywhere(message: bytes) -> None:
    assert Side(trunk=True).judge(message) == Side().judge(message) == (BARE, [])


HELLO = wrap(b"hello", Envelope(1, 2))


@pytest.mark.parametrize("message", [HELLO, b"hello", b"", wrap(b"", Envelope(1, 2))])
@pytest.mark.parametrize("trunk", [False, True])
def test_where_only_frames_may_come_any_other_message_is_malformed(message: bytes, trunk: bool) -> None:
    assert Side(opaque=False, trunk=trunk).judge(message) == (REFUSED, ["malformed"])


@pytest.mark.parametrize("content", [OTHER, b"hello"], ids=["frame", "opaque"])
def test_our_own_is_an_echo_whatever_the_rules_say(content: bytes) -> None:
    side = Side((7,), known=True)
    assert side.judge(wrap(content, Envelope(OWN, 2))) == (REFUSED, ["echo"])
    assert side.judge(wrap(content, Envelope(OWN, 2, 0))) == (REFUSED, ["echo"])
    assert side.asked == []


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (wrap(OTHER, Envelope(1, 2)), "pattern"),
        (HELLO, "no frame"),
        (b"hello", "no frame"),
        (ODD_ENVELOPE["flags"], "no frame"),
    ],
)
def test_what_the_rules_refuse_is_not_remembered(message: bytes, reason: str) -> None:
    side = Side((7,), known=True)
    assert side.judge(message) == (REFUSED, [reason])
    assert side.asked == []


def test_a_frame_that_the_rules_admit_enters() -> None:
    assert Side((7,)).judge(ENVELOPED) == (8, [])


@pytest.mark.parametrize("content", [FRAME, b"hello"])
@pytest.mark.parametrize("hops", [0, 8])
def test_what_is_known_is_a_duplicate(content: bytes, hops: int) -> None:
    assert Side(known=True).judge(wrap(content, Envelope(1, 2, hops))) == (REFUSED, ["duplicate"])


def test_by_default_only_frames_may_come() -> None:
    message = b"hello"
    default = Admission(OWN, Rules(), lambda _: True)
    assert hops_of(message, 0, len(message), default, Stats()) == REFUSED
    assert not default.trunk
