"""The syndication broker as a command, and as a device of a topology that changes while it runs."""

import asyncio
import errno
import signal
import socket

import pytest

from tests.helpers.ports import free_port

pytest.importorskip("msgpack")
pytest.importorskip("lark")
pytest.importorskip("re2")

from appliance.commandline.cli import main
from appliance.compose import Appliance
from appliance.status.snapshot import snapshot
from bus.balance import imbalances
from tests.devices.syndication.tcp_clients import TcpGuest, difference
from tests.helpers.appliances import appliance_of, reloaded
from tests.helpers.peers import until
from tests.helpers.programs import process
from topologies.checks.checker import check
from topologies.loading.loader import loads
from topologies.picture.show import show

Out = pytest.CaptureFixture[str]


def plant(*ports: int) -> str:
    urls = ", ".join(f"'tcp://127.0.0.1:{port}'" for port in ports)
    return f"name: t\ngateways: {{gw: }}\ndevices: {{q: {{on: gw, syndication: [{urls}], database: none}}}}\n"


async def meet(port: int, tagged: bool = False) -> None:
    """Show that a broker serves."""
    guest = await TcpGuest(tagged).connect(("127.0.0.1", port))
    try:
        await guest.subscribe("has Room")
        await guest.told(difference())
        await guest.publish("a", {"Room": "410"}, 1)
        await until(lambda: len(guest.said) == 2)
    finally:
        guest.close()


async def test_it_says_where_it_listens_and_its_counts_at_its_end() -> None:
    port = free_port()
    async with process("syndicate", f"tcp://127.0.0.1:{port}") as program:
        await meet(port)
        program.send_signal(signal.SIGTERM)
        output, _ = await program.communicate()
    assert output.decode().splitlines() == [
        "ledger of 1 link: balanced",
        "  syndication",
        "    clients: in 2, out 3, dropped 0",
    ]
    assert program.returncode == 0


async def test_a_gateway_runs_it_and_changes_it() -> None:
    one, other = free_port(), free_port()
    appliance = appliance_of(loads(plant(one)), "gw")
    appliance.open(asyncio.get_running_loop())
    try:
        await meet(one)
        status = snapshot(appliance.view())
        broker, _ = status["brokers"]  # the other one is the status page
        assert broker["urls"] == [f"tcp://127.0.0.1:{one}"]
        assert {"name": "q", "state": "up"} in status["links"]
        assert [change.line() for change in reloaded(appliance, loads(plant(one, other)))] == [
            "changed device q: syndication"
        ]
        await meet(other, tagged=True)
        await meet(one)
        (account,) = next(hub for hub in appliance.hubs() if hub.name == "q").accounts().values()
        assert account.stats.received == 6
        assert imbalances(appliance.hubs()) == []
    finally:
        appliance.close()


async def test_clients_stay_when_its_addresses_change() -> None:
    one, other = free_port(), free_port()
    appliance = appliance_of(loads(plant(one)), "gw")
    appliance.open(asyncio.get_running_loop())
    subscriber, producer = [await TcpGuest(False).connect(("127.0.0.1", one)) for _ in range(2)]
    try:
        await subscriber.subscribe("has Room")
        await subscriber.told(difference())
        assert lines(appliance, other) == ["changed device q: syndication"]
        await producer.publish("a", {"Room": "410"}, 1)
        await subscriber.told(difference(["a"]), ["a", {"Room": "410"}, 1])
        with socket.socket() as late:
            assert late.connect_ex(("127.0.0.1", one)) == errno.ECONNREFUSED
        producer.close()
        await subscriber.told(difference(gone=["a"]))
        await meet(other)
        broker, _ = snapshot(appliance.view())["brokers"]
        assert broker["urls"] == [f"tcp://127.0.0.1:{other}"]
        assert not subscriber.gone
    finally:
        appliance.close()
        subscriber.close()
        producer.close()


def lines(appliance: Appliance, *ports: int) -> list[str]:
    return [change.line() for change in reloaded(appliance, loads(plant(*ports)))]


async def test_a_port_that_is_taken_fails_and_is_tried_again() -> None:
    one, other = free_port(), free_port()
    appliance = appliance_of(loads(plant(one)), "gw")
    appliance.open(asyncio.get_running_loop())
    taken = await asyncio.start_server(lambda *_: None, "127.0.0.1", other)
    try:
        words = f"tcp://127.0.0.1:{other}: cannot listen: Address already in use by this process"
        changes = [change.line() for change in reloaded(appliance, loads(plant(one, other)))]
        assert changes == [f"failed device q: {words}"]
        taken.close()
        await taken.wait_closed()
        await meet(one)
        assert lines(appliance, one, other) == ["changed device q: syndication"]
        assert lines(appliance, one, other) == []
        await meet(other)
    finally:
        appliance.close()


def test_check_and_show_know_it() -> None:
    topology = loads(plant(25110, 25111))
    assert check(topology) == []
    drawn = "   └─ device q\n      ├─ syndication broker\n      ├─ listen tcp://127.0.0.1:25110"
    assert drawn in show(topology)
    assert '[("device q")]' in show(topology, "mermaid")
    double = loads(plant(25110) + "brokers: {b: {on: gw, listen: 'tcp://127.0.0.1:25110'}}")
    assert ["TCP port 25110 is taken" in finding.text for finding in check(double)] == [True]


def test_a_database_has_a_name(capsys: Out) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["syndicate", "--database", "", "tcp://127.0.0.1:1"])
    assert "argument --database: an empty word" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("udp://127.0.0.1:1", "udp://127.0.0.1:1: a syndication broker listens on tcp://HOST:PORT"),
        ("tcp://127.0.0.1", "has no port"),
        ("ws://127.0.0.1:1", "a syndication broker listens on tcp://HOST:PORT"),
        ("tcp://[::1]:4444", "IPv4"),
        ("127.0.0.1:4444", "a syndication broker listens on tcp://HOST:PORT"),
    ],
)
def test_an_address_that_cannot_be_is_a_problem(url: str, fault: str, capsys: Out) -> None:
    assert main(["syndicate", url]) == 1
    errors = capsys.readouterr().err
    assert fault in errors
    assert errors.count("\n") == 1


def test_a_missing_library_is_named_with_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    from bus import extras

    monkeypatch.setattr(extras, "find_spec", lambda module: None if module == "re2" else module)
    assert main(["syndicate", "tcp://127.0.0.1:0"]) == 1
    errors = capsys.readouterr().err
    assert "the syndication broker needs google-re2: run " in errors
    assert "'buscoupler[syndication]'" in errors
