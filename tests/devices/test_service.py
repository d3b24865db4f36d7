"""The port of a service: bounded, in order, and after what goes on."""

import asyncio

from bus.hub import Hub
from bus.wire.batch import from_payloads
from devices.service import Service
from tests.bridges.support import RecordingPipe
from tests.devices.echo import Echo, EchoSpec
from tests.helpers.peers import until


def test_what_a_service_says_is_bounded() -> None:
    loop = asyncio.new_event_loop()
    hub, ear, service = Hub("p"), RecordingPipe(), Service("s", EchoSpec(on="gw", echo=("p",)))
    hub.attach(ear)
    service.open(hub, loop)
    half = bytes(service.queue_bytes // 2)
    service.ports[0].say([half, half, b"more"])
    assert service.ports[0].stats.rejected == {"queue full": 1}
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    assert ear.messages == [half, half]


def test_what_a_service_had_not_said_when_it_leaves_is_counted() -> None:
    loop = asyncio.new_event_loop()
    hub, service = Hub("p"), Service("s", EchoSpec(on="gw", echo=("p",)))
    service.open(hub, loop)
    service.ports[0].say([b"one", b"two"])
    service.close()
    loop.close()
    assert hub.accounts()["s"].stats.rejected == {"closed": 2}


async def test_an_answer_comes_after_its_question_for_every_peer() -> None:
    hub, asks, hears = Hub("p"), RecordingPipe(), RecordingPipe()
    hub.attach(asks)
    service = Echo("e", EchoSpec(on="gw", echo=("p",)))
    service.open(hub, asyncio.get_running_loop())
    hub.attach(hears)  # after the service, which would otherwise answer before this one hears the question
    hub.publish(from_payloads([b"a", b"b"]), asks)
    await until(lambda: len(asks.messages) == 2)
    assert hears.messages == [b"a", b"b", b"echo a", b"echo b"]
    service.close()
    hub.publish(from_payloads([b"c"]), asks)
    assert hub.pipes == (asks, hears)
