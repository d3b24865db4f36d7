"""Random messages, and all against a naive model."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from devices.dbp.catalog import wire
from devices.dbp.catalog.wire import Received, Refused, parse
from tests.devices.dbp.catalog.room import DISCONNECT, SILENT, Room, word
from tests.devices.dbp.catalog.strategies import any_frame


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from([b"p", b"q", b"r"]), st.lists(any_frame, max_size=5)), max_size=20))
def test_no_messages_raise_and_who_is_silenced_hears_nothing(said: list[tuple[bytes, list[bytes]]]) -> None:
    room = Room(silence_s=1000)
    silenced = set[bytes]()
    for peer, frames in said:
        outcome = room.hear(peer, frames)
        assert (outcome == SILENT) == (peer in silenced)
        found = parse(frames, room.bounds)
        if isinstance(found, Refused) or found.word == wire.DISCONNECT or outcome.reply == DISCONNECT:
            silenced.add(peer)
        room.wait(0.25)


steps = st.lists(
    st.tuples(
        st.sampled_from(["register", "update", "disconnect", "beat", "garbage", "wait", "pong"]),
        st.integers(0, 2),  # the peer, and its host
        st.integers(0, 2),  # the name, and its port
    ),
    max_size=60,
)


@settings(max_examples=100)
@given(steps)
def test_what_is_listed_is_what_a_naive_model_lists(said: list[tuple[str, int, int]]) -> None:
    """Names with the host that they are of and the moment of the last sign, nothing more."""
    room, model, connections = Room(), dict[int, tuple[int, float]](), dict[bytes, int]()
    for number, (what, host, name) in enumerate(said):
        peer, address = b"%d" % number, f"10.9.0.{host}"
        mine = name in model and model[name][0] == host
        if what == "wait":
            room.wait(1.5)
            model = {n: (h, at_s) for n, (h, at_s) in model.items() if room.now_s - at_s < 5}
            continue
        if what == "register":
            approved = word(room.register(str(name), name + 1, peer, address)) == wire.APPROVED
            assert approved == (mine or name not in model)
            connections[peer] = name
            heard = approved
        elif what == "disconnect":
            last = [p for p, n in connections.items() if n == name and mine]
            heard = False
            if last and room.say(last[-1], wire.DISCONNECT, host=address).kept:
                del model[name]
        elif what == "pong":
            heard = name in model
            pong = Received(wire.PONG, True, (str(name),))
            assert (room.registry.answered(str(name), pong, room.now_s) == "") == heard
            host = model[name][0] if heard else host
        else:
            body: Any = {"update": {"name": str(name)}, "beat": str(name).encode(), "garbage": b"\xff"}[what]
            verb = {"update": wire.UPDATE, "beat": wire.HEARTBEAT, "garbage": wire.INFO_REQUEST}[what]
            outcome = room.say(peer, verb, body, host=address)
            heard = what != "garbage" and mine
            assert (outcome.reply is not None and outcome.reply.word == wire.ACKNOWLEDGED) == heard
        if heard:
            model[name] = (host, room.now_s)
    assert {int(n) for n in room.listed()} == model.keys()
