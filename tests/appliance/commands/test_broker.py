"""`buscoupler broker` as a service: clients find each other through it; wrong addresses are named."""

import argparse
import asyncio

import pytest

from appliance.commandline.cli import main
from appliance.commands import broker as command
from appliance.parts.broker import BrokerPart
from bus.leases.service import LeasingBroker
from bus.leases.settings import BrokerSettings
from bus.tmq import Client
from bus.transports.options import Tls
from tests.helpers.appliances import appliance_of
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.helpers.tmq import ReferenceClient
from topologies.loading.loader import loads


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


async def exact_of(address: tuple[str, int], brokers: list[str]) -> bool:
    """Return whether a broker keeps (1, 2) from a client of 2015 that subscribed to (1,)."""
    theirs = ReferenceClient(address)
    try:
        theirs.subscribe(1)
        async with Client(brokers=brokers, listen=("127.0.0.1", 0)) as ours:
            await ours.publish((1,))
            await until(lambda: ours.subscribers((1,)) == [theirs.address])
            await ours.publish((1, 2))
            return ours.subscribers((1, 2)) == []
    finally:
        theirs.close()


@pytest.mark.parametrize("exact", [True, False])
async def test_the_settings_of_a_broker_are_the_same_in_a_file(exact: bool) -> None:
    keys = f"{{on: a, listen: 'tcp://127.0.0.1:{free_port()}', exact: {str(exact).lower()}, lease_ms: 700}}"
    appliance = appliance_of(loads(f"name: t\ngateways: {{a: }}\nbrokers: {{m: {keys}}}"), "a")
    appliance.open(asyncio.get_running_loop())
    try:
        part = appliance.parts["broker m"]
        assert isinstance(part, BrokerPart)
        assert await exact_of(part.service.broker.addresses[0], part.service.broker.urls) == exact
    finally:
        appliance.close()


@pytest.mark.parametrize("exact", [True, False])
async def test_the_settings_of_a_broker_on_the_command_line(exact: bool) -> None:
    parser = argparse.ArgumentParser()
    command.arguments(parser)
    words = ["tcp://127.0.0.1:0", "--heartbeat-ms", "400", *["--exact"][: int(exact)]]
    made = command.settings_of(parser.parse_args(words))
    assert made == BrokerSettings(heartbeat_ms=400, exact=exact)
    service = LeasingBroker(["tcp://127.0.0.1:0"], settings=made)
    service.open(asyncio.get_running_loop())
    try:
        assert await exact_of(service.broker.addresses[0], service.broker.urls) == exact
    finally:
        service.close()


@pytest.mark.parametrize("words", [["--lease-ms", "0"], ["--lease-ms", "x"], ["--heartbeat-ms", "99999999"]])
def test_settings_that_cannot_be_are_wrong_use(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["broker", "tcp://127.0.0.1:0", *words])
    assert stopped.value.code == 2
    assert words[0].lstrip("-").split("-")[0] in capsys.readouterr().err


def test_an_address_that_cannot_be_is_a_problem(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["broker", "udp://127.0.0.1:1"]) == 1
    assert "udp" in capsys.readouterr().err


SECURE = "tls+tcp://127.0.0.1:0"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([SECURE], "cert_file"),
        ([SECURE, "--tls-key", "k"], "cert_file"),
        (["tcp://127.0.0.1:0", "--tls-cert", "c"], "are for tls+tcp://"),
        (["tcp://127.0.0.1:0", "--require-peer-cert"], "are for tls+tcp://"),
    ],
)
def test_tls_that_cannot_be_is_wrong_use(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["broker", *words])
    assert stopped.value.code == 2
    assert told in capsys.readouterr().err


def test_certificates_on_the_command_line() -> None:
    parser = argparse.ArgumentParser()
    command.arguments(parser)
    files = ["--tls-cert", "c", "--tls-key", "k", "--tls-ca", "a", "--require-peer-cert"]
    made = command.tls_of(parser.parse_args([SECURE, "tcp://127.0.0.1:1", *files]))
    assert made == {SECURE: Tls("a", "c", "k", require_peer_cert=True)}
