"""Leases over TLS: who shows a certificate may hold one, and the plain listener beside goes on."""

import asyncio
import logging
import re
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from bus.errors import LinkError
from bus.keys import SECRET_BYTES, Keyring
from bus.leases.candidate import Candidate
from bus.leases.link import BrokerLink
from bus.leases.service import LeasingBroker
from bus.leases.settings import BrokerSettings
from bus.leases.wire import Claim, pack_claim
from bus.serving.limits import Limits
from bus.tmq.broker import Broker
from bus.transports.options import Tls
from bus.transports.secure import Security
from tests.bus.leases.standby import Standby, words
from tests.helpers.certificates import own_tls
from tests.helpers.clocks import wait_in_vain
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.helpers.tmq import ReferenceClient, processed

KEYS = Keyring([bytes(SECRET_BYTES)])
LATE_S = 0.05  # for the handshake, here


@pytest.fixture(autouse=True)
async def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no lease run out, and no attempt to connect, because this process had no turn."""
    wait_in_vain(monkeypatch)


@pytest.fixture
def tls(tmp_path: Path) -> Tls:
    return replace(own_tls(tmp_path), require_peer_cert=True)


class Place:
    """A broker with an address with TLS and one without."""

    def __init__(self, tls: Tls, keys: Keyring | None = None, idle_s: float = 5.0) -> None:
        self.url = f"tls+tcp://127.0.0.1:{free_port()}"
        certificates = {self.url: tls}
        listen = [self.url, "tcp://127.0.0.1:0"]
        self.service = LeasingBroker(listen, keys=keys, tls=certificates, idle_s=idle_s)
        self.service.open(asyncio.get_running_loop())
        self.secure, self.plain = self.service.broker.addresses

    def standby(self, tls: Tls | None, keys: Keyring | None = None, id: int = 7) -> Standby:
        address = self.plain if tls is None else self.secure
        return Standby(address, keys, id, None if tls is None else dialling(self.url, tls))

    @property
    def connections(self) -> int:
        return self.service.counts["connections"]


def dialling(url: str, tls: Tls) -> Security:
    made = Security(url, tls, listens=False)
    made.open()
    return made


@pytest.fixture
async def place(tls: Tls) -> AsyncIterator[Place]:
    made = Place(tls)
    yield made
    made.service.close()


async def told(one: Standby, caplog: pytest.LogCaptureFixture, text: str) -> None:
    """Wait until a candidate has logged a text."""

    def said() -> bool:
        one.link.claim()
        return any(text in line for line in words(caplog, "buscoupler.failover"))

    await until(said)
    assert not one.candidate.holding
    assert one.candidate.views[0].reach != "refused"  # such a broker would count as dead


async def test_a_candidate_with_a_certificate_needs_no_key(place: Place, tls: Tls) -> None:
    one = place.standby(tls)
    await one.granted()
    assert place.service.rejected == {}
    assert [lease.bridge for lease in place.service.leases()] == ["x"]
    one.link.close()


async def test_keys_and_certificates_together(tls: Tls) -> None:
    place = Place(tls, KEYS)
    one, other = place.standby(tls, KEYS), place.standby(None, KEYS, 8)
    await one.granted()
    await other.answered()
    bare = place.standby(tls, None, 9)  # its certificate is enough
    await bare.answered()
    assert place.service.rejected == {}
    for each in (one, other, bare):
        each.link.close()
    place.service.close()


async def test_without_a_certificate_a_candidate_is_refused_and_both_say_so(
    place: Place, tls: Tls, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        one = place.standby(Tls(tls.ca_file))
        reason = "TLS: peer did not return a certificate"
        await one.refused(place.service, reason)
        await told(one, caplog, "alert")
    assert f"tmq broker: refused from 127.0.0.1: {reason}" in words(caplog, "buscoupler.tmq")
    assert not place.service.leases()
    one.link.close()
    await until(lambda: not place.connections)


async def test_a_refused_candidate_dials_with_pauses(place: Place, tls: Tls) -> None:
    pauses: list[tuple[float, float]] = []

    def jitter(*span: float) -> float:
        pauses.append((span[0], span[1]))
        return span[0]

    candidate = Candidate((1,), "x", 7, 0, 1)
    link = BrokerLink(candidate, 0, place.secure, lambda: None, jitter)
    link.secure(dialling(place.url, Tls(tls.ca_file)))
    link.open(asyncio.get_running_loop())
    await until(lambda: len(pauses) == 3)
    assert place.service.counts["accepted"] == 3
    link.close()


async def test_a_certificate_of_another_authority_is_refused(
    place: Place, tls: Tls, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own = trustme.CA().issue_cert("gw-a")
    own.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "other.pem"))
    one = place.standby(Tls(tls.ca_file, str(tmp_path / "other.pem")))
    await told(one, caplog, "TLS")
    assert not place.service.leases()
    one.link.close()


async def test_a_false_broker_is_not_believed(
    tls: Tls, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "false").mkdir()
    place = Place(own_tls(tmp_path / "false"))
    one = place.standby(tls)
    await told(one, caplog, "TLS: the certificate is refused")
    assert one.candidate.views[0].grant is None
    one.link.close()
    place.service.close()


async def test_beside_an_address_with_certificates_claims_without_are_refused(
    place: Place, tls: Tls, caplog: pytest.LogCaptureFixture
) -> None:
    one = place.standby(None)
    await one.refused(place.service, "unsigned")
    await told(one, caplog, "give this gateway its keys, or a certificate for TLS")
    one.link.close()
    place.service.revise((), BrokerSettings())  # nobody asks for certificates any more
    two = place.standby(None)
    await two.granted()
    two.link.close()


async def test_an_address_with_tls_that_asks_for_no_certificate_proves_nothing(tls: Tls) -> None:
    place = Place(replace(tls, require_peer_cert=False), KEYS)
    one = place.standby(tls)
    await one.refused(place.service, "unsigned")
    one.link.close()
    signed = place.standby(tls, KEYS)
    await signed.granted()
    signed.link.close()
    place.service.close()


async def test_clients_of_2015_meet_at_the_plain_listener(place: Place, tls: Tls) -> None:
    one = place.standby(tls)
    await one.granted()
    ear, mouth = ReferenceClient(place.plain), ReferenceClient(place.plain)
    try:
        ear.subscribe(1)
        mouth.publish(1)
        await processed(lambda: mouth.subscribers[(1,)] == {ear.address}, mouth)
        mouth.send((1,), b"on")
        await processed(lambda: ear.received[(1,)] == [b"on"], ear)
        await one.granted()
        assert place.service.rejected == {}
    finally:
        ear.close()
        mouth.close()
        one.link.close()


async def test_a_silent_peer_and_one_that_speaks_no_tls_are_gone(tls: Tls) -> None:
    assert Limits().idle_s == 5.0
    place = Place(tls, idle_s=LATE_S)
    claim = pack_claim(Claim((1,), "x", 9, ready=True, holding=True))
    with socket.create_connection(place.secure), socket.create_connection(place.secure) as loud:
        loud.sendall(10 * claim)
        await until(lambda: place.service.counts["accepted"] == 2 and not place.connections)
    assert place.service.rejected.pop(f"no handshake within {LATE_S:g} s") == 1
    ((reason, count),) = place.service.rejected.items()
    assert reason.startswith("TLS: ")
    assert count == 1
    assert not place.service.leases()
    place.service.close()


async def test_when_the_connection_breaks_another_takes_over(place: Place, tls: Tls) -> None:
    relay = Relay(place.secure)
    one = Standby(await relay.open(), None, 7, dialling(place.url, tls), lease_ms=2000)
    await one.granted()
    two = place.standby(tls, id=8)
    await two.answered()
    assert not two.candidate.holding
    relay.cut()
    await two.granted()
    await until(lambda: one.candidate.judge(asyncio.get_running_loop().time()) != "active")
    for each in (one, two):
        each.link.close()


class Relay:
    """Passes on what comes, until it is cut: then nobody answers there any more."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> tuple[str, int]:
        self._server = await asyncio.start_server(self._came, "127.0.0.1", 0)
        address: tuple[str, int] = self._server.sockets[0].getsockname()
        return address

    async def _came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(*self._target)
        self._writers += [writer, far_writer]
        for one, other in ((reader, far_writer), (far_reader, writer)):
            self._tasks.append(asyncio.create_task(self._pass_on(one, other)))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(4096):
            writer.write(data)

    def cut(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        for writer in self._writers:
            writer.transport.abort()


async def test_a_listener_with_tls_needs_a_certificate(tls: Tls) -> None:
    service = LeasingBroker([url := f"tls+tcp://127.0.0.1:{free_port()}"])
    loop = asyncio.get_running_loop()
    with pytest.raises(LinkError, match=re.escape(f"{url}: a TLS listener needs cert_file")):
        service.open(loop)


def test_no_address_is_taken_twice() -> None:
    with pytest.raises(LinkError, match="twice"):
        Broker(["tcp://127.0.0.1:0", "tls+tcp://127.0.0.1:0"])


async def test_a_broker_that_says_nothing_is_told_and_a_candidate_that_closes_is_not(
    tls: Tls, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: calls.append(writer), "127.0.0.1", 0)
    address = server.sockets[0].getsockname()
    one = Standby(address, None, 7, dialling("tls+tcp://{}:{}".format(*address), tls))
    await until(lambda: len(calls) == 1)
    one.link.close()
    await asyncio.sleep(0)
    assert words(caplog, "buscoupler.failover") == []
    two = Standby(address, None, 7, dialling("tls+tcp://{}:{}".format(*address), tls))
    await told(two, caplog, "no answer")
    two.link.close()
    for writer in calls:
        writer.close()
    server.close()
