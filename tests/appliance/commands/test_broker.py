"""`buscoupler broker` as a service: clients find each other through it; wrong addresses are named."""

import asyncio

import pytest

from appliance.cli import main
from bus.leases.service import LeasingBroker
from bus.tmq import Client


async def test_clients_meet_through_it() -> None:
    service = LeasingBroker(["tcp://127.0.0.1:0"])
    service.open(asyncio.get_running_loop())
    address = service.broker.urls[0].removeprefix("tcp://")
    try:
        async with (
            Client(brokers=[address], listen=("127.0.0.1", 0)) as fridge,
            Client(brokers=[address], listen=("127.0.0.1", 0)) as alarm,
        ):
            await alarm.subscribe("fridge")
            await fridge.publish(("fridge", "temp"), b"21.5")
            _, data = await alarm.receive()
            assert data == b"21.5"
        assert all(pipe.stats.balance() == 0 for hub in service.hubs() for pipe in hub.pipes)
    finally:
        service.close()


def test_an_address_that_cannot_be_is_a_problem(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["broker", "udp://127.0.0.1:1"]) == 1
    assert "udp" in capsys.readouterr().err
