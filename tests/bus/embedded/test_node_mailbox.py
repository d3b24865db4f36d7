"""The node's I2C mailbox against the gateway's controller, in virtual time."""

import random
from typing import Any

import pytest

from bridges.media.i2c.mailbox_controller import Controller
from bus.embedded import buscoupler_node as node_module
from bus.embedded.buscoupler_node import Mailbox
from tests.bridges.support import SIZES, frame
from tests.bus.embedded.support import small_node
from tests.bus.embedded.wires import Wires

SMALL: Any = small_node(["i2c"])


@pytest.mark.parametrize("fails", [0.0, 0.2])
@pytest.mark.parametrize("module", [node_module, SMALL])
def test_every_size_both_ways(module: Any, fails: float) -> None:
    wires = Wires(module.Mailbox(bytearray(64), limit=3084), fails)
    messages = [frame(size) for size in SIZES]
    waiting = list(messages)
    for message in messages:
        if wires.target.send(waiting[0]):
            waiting.pop(0)
        assert wires.send([message]) == ["sent"]
    for _ in range(200000):
        wires.turn()
        if waiting and wires.target.send(waiting[0]):
            waiting.pop(0)
        if len(wires.up) == len(messages):
            break
    assert wires.up == messages
    assert wires.down == messages
    assert wires.target.rejected == wires.target.oversize == 0


def test_longer_ones_are_skipped_and_counted() -> None:
    wires = Wires(Mailbox(bytearray(64), limit=64))
    assert wires.send([frame(64), frame(65), frame(3072), frame(4)]) == ["sent"] * 4
    assert wires.down == [frame(64), frame(4)]
    assert wires.target.oversize == 2


def test_the_queue_is_bounded_and_what_it_refuses_is_counted() -> None:
    target = Mailbox(bytearray(64), queue=2)
    assert [target.send(frame(20, seed)) for seed in range(3)] == [True, True, False]
    assert target.unsent == 1
    wires = Wires(target)
    for _ in range(500):
        wires.turn()
    assert wires.up == [frame(20, 0), frame(20, 1)]


def test_a_target_that_boots_again_is_linked_again() -> None:
    wires = Wires(Mailbox(bytearray(64)))
    wires.send([frame(40)])
    wires.target = Mailbox(wires.target.memory)
    wires.target.send(frame(50))
    for _ in range(500):
        wires.turn()
    assert wires.controller.resets == 1
    assert wires.up == [frame(50)]
    assert wires.send([frame(60)]) == ["sent"]


def test_a_gateway_that_boots_again_links_again_and_only_what_was_begun_is_lost() -> None:
    wires = Wires(Mailbox(bytearray(64)))
    wires.link()
    for seed in range(2):
        wires.target.send(frame(200, seed))
    while not wires.target.placed:
        wires.turn()
    wires.controller = Controller()
    for _ in range(1000):
        wires.turn()
    assert wires.up == [frame(200, 1)]
    assert wires.target.unsent == 1


def test_an_impossible_acknowledgement_has_the_link_begun_anew() -> None:
    wires = Wires(Mailbox(bytearray(64)))
    wires.link()
    wires.target.memory[0x1F] ^= 0x10  # there was nothing to acknowledge
    wires.target.poll()
    assert wires.target.epoch == 0
    assert wires.send([frame(50)]) == ["sent"]
    assert wires.controller.links == 2
    assert wires.down == [frame(50)]


def test_any_memory_is_harmless() -> None:
    chance = random.Random(1)
    target = Mailbox(bytearray(64))
    for _ in range(20000):
        at = chance.choice((0x1E, 0x1F, chance.randrange(0x20)))
        target.memory[at] = chance.randrange(256)
        assert target.poll() is None
    wires = Wires(target)
    assert wires.send([frame(100)]) == ["sent"]
    assert wires.down == [frame(100)]
