"""An I2C bus whose chips are asked for registers by a protocol."""

import contextlib
import logging
from asyncio import AbstractEventLoop
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

from bridges.items import Answer, Request
from bridges.media.arrivals import Arrivals
from bridges.media.device import Alarm, DeviceLink, OpenPipe, PipeContext, need, preload
from bridges.media.i2c.adapter import Adapter, open_adapter, trouble
from bridges.media.i2c.medium import I2c
from bridges.media.outgoing import Outgoing
from bridges.media.refusing import refusing
from bridges.media.shedding import Shed
from bridges.media.spoken import unix_s
from bridges.protocols.protocol import Protocol
from bridges.protocols.translator import Translator, Wire, always
from bus.hub import Hub
from bus.vacancy import Filter
from bus.wire.batch import Batch, from_payloads, payloads

log = logging.getLogger("buscoupler.bridges")
FAULTS = {"nack": "no answer", "bus": "bus fault"}
"""Reasons of rejects, by the trouble of an access."""


class Opened(NamedTuple):
    """An open adapter, and the translator for the chips behind it."""

    adapter: Adapter
    translator: Translator[Any]


class I2cSpoken(DeviceLink[Opened]):
    """An I2C bus as a link, with a protocol that asks.

    `adapter` opens an adapter instead of the kernel's. `may_act` is that of
    `bridges.protocols.translator.Wire`. `rest` is that of `DeviceLink`.
    """

    def __init__(
        self,
        options: I2c,
        protocol: Protocol,
        shed: Shed | None = None,
        may_act: Callable[[float], bool] = always,
        adapter: Callable[[], Adapter] | None = None,
        **rest: Any,
    ) -> None:
        self.options, self.protocol, self._may_act, self._adapter = options, protocol, may_act, adapter
        super().__init__(f"i2c:{options.bus}", shed, options.queue_bytes, **rest)
        if adapter is None:
            preload("smbus2")

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Start to open the bus. Raises `LinkError` if smbus2 is missing."""
        if self._adapter is None:
            need(self.name, "smbus2", "smbus2", "i2c")
        super().open(hub, loop)

    def _open_device(self) -> Opened:
        clock = partial(unix_s, self._loop.time)
        wire = Wire(self.name, "registers", self.stats, clock, may_act=self._may_act)
        translator = self.protocol.translator(wire)
        return Opened(
            open_adapter(self.options.bus) if self._adapter is None else self._adapter(), translator
        )

    def _missing(self) -> Filter | None:
        return refusing(self.protocol, self.stats, self._hub, self._loop)

    def _release(self, device: Opened) -> None:
        _release(device.adapter)

    def _make_pipe(self, device: Opened, context: PipeContext) -> OpenPipe:
        return I2cSpokenPipe(device, self.shed, context)

    @property
    def condition(self) -> str:
        said = self.pipe.condition if isinstance(self.pipe, I2cSpokenPipe) else ""
        return said if self.state == "up" else ""


def _release(adapter: Adapter) -> None:
    with contextlib.suppress(Exception):  # a driver may raise any exception when its device is gone
        adapter.close()


def access(adapter: Adapter, request: Request) -> Answer | None:
    """Make the transfer of a request. Return None if the adapter is gone."""
    try:
        return Answer(request.token, _transfer(adapter, request))
    except OSError as error:
        kind = trouble(error, adapter)
        return None if kind == "gone" else Answer(request.token, b"", FAULTS[kind or "bus"])


def _transfer(adapter: Adapter, request: Request) -> bytes:
    target, register, data = request.target, request.register, request.write
    if data and request.is_word:
        adapter.write_word_data(target, register, int.from_bytes(data, "little"))
    elif data:
        adapter.write_i2c_block_data(target, register, list(data))
    elif request.is_word:
        return adapter.read_word_data(target, register).to_bytes(2, "little")
    else:
        return bytes(adapter.read_i2c_block_data(target, register, request.read_bytes))
    return b""


class Worker:
    """The thread that makes all transfers, one after the other, and releases the adapter in the end.

    An adapter that does not block needs none: its transfers are made on the loop.
    """

    def __init__(
        self,
        loop: AbstractEventLoop,
        adapter: Adapter,
        on_answers: Callable[[Sequence[Answer]], None],
        on_gone: Callable[[], None],
    ) -> None:
        self._loop, self._adapter, self._on_gone = loop, adapter, on_gone
        self._answers = Arrivals[Answer](loop, on_answers, 16)
        self._asked: SimpleQueue[Request | None] = SimpleQueue()
        if adapter.blocks:
            Thread(target=self._run, name="i2c", daemon=True).start()

    def ask(self, request: Request) -> None:
        """Make a transfer soon."""
        if self._adapter.blocks:
            self._asked.put(request)
        else:
            self._loop.call_soon(self._serve, request)

    def stop(self) -> None:
        """End after the transfer that is being made."""
        if self._adapter.blocks:
            self._asked.put(None)
        else:
            _release(self._adapter)

    def _run(self) -> None:
        while (request := self._asked.get()) is not None:
            self._serve(request)
        _release(self._adapter)

    def _serve(self, request: Request) -> None:
        answer = access(self._adapter, request)
        if answer is None:
            return self._answers.call(self._on_gone)
        self._answers.append(answer)
        return self._answers.announce()


class I2cSpokenPipe(OpenPipe):
    """All chips of the bus, as one peer."""

    def __init__(self, opened: Opened, shed: Shed, context: PipeContext) -> None:
        super().__init__(context)
        self._translator, self._told = opened.translator, ""
        self.answers = self._translator.asks
        self._outgoing = Outgoing(self.stats, shed, opened.translator)
        self._worker = Worker(self._loop, opened.adapter, self._on_answers, self._on_gone)
        self._open = 0  # transfers that the worker has,
        self._asked: Request | None = None  # and the last one
        self._alarm = Alarm(self._turn)

    @property
    def condition(self) -> str:
        """The state of the chips in the protocol's own words; "" if it has none."""
        return self._translator.condition

    def start(self) -> None:
        self._hub.attach(self)
        self._arm()

    def _on_gone(self) -> None:
        self._gone("lost: the adapter is gone")

    def _on_answers(self, answers: Sequence[Answer]) -> None:
        self._open -= len(answers)
        if self._wire.hears:
            self._show(answers)
        if not self._closed:
            self._publish(self._translator.take(answers, self._loop.time()))
            self._note(len(answers))

    def _turn(self) -> None:
        self._hand_on()
        turn = self._translator.advance(self._loop.time())
        self._publish(turn.messages)
        for request in turn.items:
            self._ask(request)
        self._note(0)

    def _ask(self, request: Request) -> None:
        """Have a transfer made; not behind one that hangs, for who may ask now may not when that ends."""
        if self._open:
            self._loop.call_soon(self._refuse, Answer(request.token, b"", FAULTS["bus"]))
        else:
            self._open += 1
            self._asked = request
            if self._wire.hears:
                self._wire.tell((request.on_wire(),), True)
            self._worker.ask(request)

    def _show(self, answers: Sequence[Answer]) -> None:
        """Show a tap what was read: the address of the chip, the register, and the data."""
        asked = self._asked
        if asked is not None:
            read = [one.data for one in answers if one.data and one.token == asked.token]
            self._wire.tell([asked.on_wire()[:2] + data for data in read])

    def _refuse(self, answer: Answer) -> None:
        self._open += 1
        self._on_answers([answer])

    def _publish(self, messages: Sequence[bytes]) -> None:
        if messages:
            self._hub.publish(from_payloads(messages), self)

    def _note(self, size: int) -> None:
        self._outgoing.settle_held()
        self._heard(size, *self._translator.take_counts())
        before, self._told = self._told, self._translator.condition
        if self._told and self._told != before:
            log.warning("%s: %s", self.name, self._told)
        elif before and not self._told:
            log.info("%s: no more: %s", self.name, before)
        self._arm()

    def _put(self, batch: Batch) -> None:
        self._outgoing.put(list(payloads(batch)), self._loop.time())
        self._hand_on()
        self._note(0)

    def _hand_on(self) -> None:
        """Give the translator all commands that the policy lets go now."""
        self._outgoing.head(1, self._loop.time(), lambda _: 0.0)

    def turn_away(self, messages: Sequence[bytes], reason: str) -> None:
        self._outgoing.turn_away(messages, reason)
        self._arm()

    def purge(self, reason: str) -> list[bytes]:
        """Drop the commands that have not been sent, and return them."""
        dropped = self._outgoing.purge(reason)
        self._arm()
        return dropped

    def revise(self, shed: Shed) -> bool:
        """Use another shed policy."""
        self._outgoing.revise(shed)
        self._arm()
        return True

    def _arm(self) -> None:
        if not self._closed:
            self._alarm.set(self._loop, min(self._translator.due_s, self._outgoing.ready_s()))

    def _gone(self, why: str) -> None:
        if not self._closed:
            self._outgoing.close("closed")
            self._publish(self._translator.finish(self._loop.time()))
        super()._gone(why)

    def _end(self, why: str) -> None:
        self._alarm.cancel()
        self._outgoing.close("closed")
        self._worker.stop()
