"""Targets that read one message of a bus, or one packet of a broker."""

from typing import Final

from appliance.alarms.announcement import announced, heard, presence
from appliance.alarms.keeping import unpacked
from appliance.alarms.states import State
from appliance.plant.announcement import announced as announced_note
from appliance.plant.hearing import Hearing
from appliance.plant.note import note_of
from appliance.probe import words
from bus import asking, events, logs
from bus.announcements import Announcement, unproven
from bus.errors import FrameError
from bus.events import Event
from bus.keys import Keyring
from bus.leases import wire as leases
from bus.logs import Line
from bus.names import Names
from bus.tmq import wire as tmq
from bus.values import LastValues
from bus.wire import timed
from bus.wire.envelope import Envelope, is_enveloped, message_bytes, split, take_apart, wrap
from bus.wire.frame import PUB, Frame, frame_bytes, is_frame, pack, unpack
from bus.wire.notation import pattern_of
from bus.wire.pattern import Pattern
from tests.fuzz.target import Pieces, Target, recorded, records
from tests.fuzz.targets.streams import FRAMES, STAMPED
from topologies.picture.marks import Mark

_RING: Final = Keyring([bytes(32)])
_NAMES: Final = Names(["fridge", "temp"])


def _frame(pieces: Pieces) -> object:
    """Unpack a frame; packing its parts gives the same bytes."""
    data = b"".join(pieces)
    assert is_frame(data) == (frame_bytes(data) == len(data) > 0)
    found = unpack(data)
    assert pack(found.type, found.tokens, found.data) == data
    return found


def _envelope(pieces: Pieces) -> object:
    """Take any message apart; wrapping its parts gives the same bytes."""
    data = b"".join(pieces)
    parts = take_apart(data)
    again = parts.content if parts.envelope is None else wrap(parts.content, parts.envelope)
    assert again == data
    return parts, split(data), message_bytes(data), is_enveloped(data)


def _timed(pieces: Pieces) -> object:
    """Take a message with a time apart; its parts give the same bytes, and it is of no other kind."""
    data = b"".join(pieces)
    found, agreement = timed.take_apart_timed(data), timed.Agreement(wants=False)
    if found is not None:
        assert timed.wrap_timed(found.content, found.envelope, found.time_ms) == data
        assert take_apart(data).envelope is None
        assert take_apart(timed.untimed(data))[:2] == (found.envelope, found.content)
    is_offer, answer = agreement.hear(data)
    assert is_offer == (answer is not None) == (timed.offered(data) is not None)
    assert not (is_offer and found)
    return found, is_offer, agreement.leaving(data)


def _timed_seeds() -> list[bytes]:
    stamped = [timed.wrap_timed(frame, Envelope(1, 2), 3) for frame in (*FRAMES, b"", b"hello")]
    return [*stamped, timed.offer()]


def _shown(pieces: Pieces) -> object:
    """Show a message as `recv` does: on one line, and printable."""
    data = b"".join(pieces)
    line = words.line(data, _NAMES, 0.0)
    assert line.isprintable(), line
    return line, words.record(data, _NAMES, 0.0), words.frame_in(data)


def _claims(pieces: Pieces) -> object:
    data = b"".join(pieces)
    claim, grant = leases.unpack_claim(data), leases.unpack_grant(data)
    if claim is not None:
        assert leases.unpack_claim(leases.pack_claim(claim)) == claim
    if grant is not None:
        assert leases.unpack_grant(leases.pack_grant(grant)) == grant
    return claim, grant


def _lease_seeds() -> list[bytes]:
    claim = leases.Claim((1, 2), "fridge", 7, 1, 9, 100, 3, True, True, False, "gw-a")
    grant = leases.Grant((1, 2), "fridge", True, False, True, True, 7, 1, 9, 250, 3, "gw-b")
    return [leases.pack_claim(claim), leases.pack_grant(grant), leases.pack_claim(claim._replace(tokens=()))]


def _tmq(pieces: Pieces) -> object:
    data = b"".join(pieces)
    return tmq.unpack_hello(data), tmq.unpack_addresses(data), tmq.unpack_shared(data)


def _tmq_seeds() -> list[bytes]:
    address = tmq.pack_address(("10.0.0.7", 9943))
    hello = tmq.data_of(tmq.pack_hello(tmq.Hello(7, 1000, 1, ("10.0.0.7", 9943))))
    shared = tmq.data_of(tmq.pack_shared(tmq.PUBLISH, (1,), [("10.0.0.7", 9943)], 60)[0])
    return [hello, address * 3, shared, hello[:8]]


def _asked(pieces: Pieces) -> object:
    data = b"".join(pieces)
    found = asking.read(data)
    return asking.is_about_values(data), found


def _asking_seeds() -> list[bytes]:
    answer = asking.say(7, 90, Frame(PUB, (1, 2), b"21.5"))
    return [asking.ask(asking.Question(7, Pattern(1, 2))), answer, asking.end(asking.EndOfAnswer(7, 1, 0))]


def _remembered(pieces: Pieces) -> object:
    """Remember frames within small bounds; what is counted is what is held."""
    values = LastValues(4, 200)
    for number, message in enumerate(records(b"".join(pieces))):
        values.take([message], float(number))
    held = list(values.read())
    assert values.bytes == sum(len(value.frame) for value in held) <= 200
    assert len(held) <= 4
    return held


def _event(pieces: Pieces) -> object:
    """Read an event, and say it again as a line and as a frame."""
    found = events.read_event(b"".join(pieces))
    if found is not None:
        found.line()
        assert is_frame(found.frame())
    return found


def _announced(pieces: Pieces) -> object:
    """Hear an announcement of an alarm, and say it again: the state is the same, but for what is cut."""
    data = b"".join(pieces)
    found = heard(data)
    if found is not None and found.state is not None:
        again = heard(announced(found.gateway, "warm", found.key, found.state))
        assert again is None or again.state is None or again.state.version == found.state.version
    try:
        kept = unpacked(data)
    except ValueError:
        kept = {}
    return found, kept, unproven(data, _RING)


def _announced_seeds() -> list[bytes]:
    state = State(3, "raised", "fridge/1", 1, "9 is above 8", "gw-a", frozenset({"mail"}))
    return [presence("gw-a", 1), announced("gw-a", "warm", (7, 1), state, _RING)]


def _noted(pieces: Pieces) -> object:
    """Hear a gateway, and announce its note again."""
    here = Hearing("gw-a")
    here.follow("hall", frozenset({"gw-b"}), None)
    found = here.hear(b"".join(pieces), 0.0, 0)
    if isinstance(found, Announcement) and "gw-b" in here.said:
        note = here.said["gw-b"].note
        assert isinstance(
            here.hear(announced_note(note, {"bus a": Mark("ok", "3 peers")}), 0.0, 0), Announcement
        )
    return str(found)


def _noted_seeds() -> list[bytes]:
    status = {"topology": "hall", "gateway": "gw-b", "time_ns": 1, "started_ns": 1, "candidates": []}
    made = note_of(status | {"health": {"word": "ok", "line": "ok"}})
    return [
        announced_note(made, {"bus a": Mark("bad", "up", ways=("1/s", "0/s"))}),
        announced_note(made, {}, _RING),
    ]


def _logged(pieces: Pieces) -> object:
    """Read a line of a log, and say it again."""
    found = logs.read_line(b"".join(pieces))
    if found is not None:
        assert is_frame(found.frame())
    return found


def _event_seeds() -> list[bytes]:
    told = Event(1, "link", "gw-a/can0", "down: é", {"drops": 3}).frame()
    wrong = pack(
        PUB, (*events.PATTERN, 7), b'{"time_ns":true,"kind":"\\ud800","source":"","cause":"\\u001b[1m"}'
    )
    return [told, wrong]


def _log_seeds() -> list[bytes]:
    told = Line(1, "warning", "gw-a", "buscoupler.can", "down: é").frame()
    tokens = (*logs.PATTERN, *Pattern("error"))
    wrong = pack(PUB, tokens, b'{"time_ns":1e3,"source":"\\ud800","logger":"","text":"\\u0000"}')
    return [told, wrong]


_PATTERN: Final = pattern_of("fridge/temp")

TARGETS: Final = (
    Target("frame", "a frame", _frame, lambda: FRAMES, (FrameError,), whole=True),
    Target(
        "envelope",
        "a message with or without an envelope",
        _envelope,
        lambda: [*FRAMES, *STAMPED],
        whole=True,
    ),
    Target("timed", "a message with a time, and an offer to take such", _timed, _timed_seeds, whole=True),
    Target(
        "shown",
        "a message as commands show it",
        _shown,
        lambda: [*FRAMES, *STAMPED, pack(PUB, _PATTERN, "é\x1b[2J".encode())],
        whole=True,
    ),
    Target("lease", "claims and grants", _claims, _lease_seeds, whole=True),
    Target("tmq-addresses", "greetings and addresses of TMQ", _tmq, _tmq_seeds, whole=True),
    Target("values", "questions for last values, and answers", _asked, _asking_seeds, whole=True),
    Target("last-values", "frames that are remembered", _remembered, lambda: [recorded(*FRAMES)], whole=True),
    Target("event", "events of gateways", _event, _event_seeds, whole=True),
    Target("alarm", "announcements of alarms", _announced, _announced_seeds, whole=True),
    Target("note", "announcements of gateways", _noted, _noted_seeds, whole=True),
    Target("log", "lines of the log of gateways", _logged, _log_seeds, whole=True),
)
