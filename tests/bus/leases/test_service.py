"""A broker with leases, over real sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from bus.keys import SECRET_BYTES, Keyring
from bus.leases.service import LeasingBroker
from bus.leases.signed import NONCE_BYTES, Session, pack_ask, unpack_answer
from bus.leases.wire import CLAIM_TYPE, Claim, Grant, pack_claim, unpack_grant
from bus.tmq.wire import PUBLISH, SUBSCRIBE, UNSUBSCRIBE, Cutter, pack_address
from bus.wire.frame import SUB, pack
from tests.helpers.clocks import wait_in_vain
from tests.helpers.peers import until

CLAIM = Claim((1,), "bridge", 77, ready=True)


@pytest.fixture(autouse=True)
async def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no lease run out, and no attempt to connect, because this process had no turn."""
    wait_in_vain(monkeypatch)


@pytest.fixture
async def service() -> AsyncIterator[LeasingBroker]:
    made = LeasingBroker(["tcp://127.0.0.1:0"])
    made.open(asyncio.get_running_loop())
    yield made
    made.close()


def dial(service: LeasingBroker) -> socket.socket:
    return socket.create_connection(service.broker.addresses[0])


async def grants(sock: socket.socket, cutter: Cutter) -> list[Grant]:
    """Return the grants that come next."""
    sock.setblocking(False)
    frames = cutter.cut(await asyncio.get_running_loop().sock_recv(sock, 4096))
    return [grant for frame in frames if (grant := unpack_grant(frame))]


async def test_a_claim_is_answered_ahead_of_what_publishers_must_be_told_of_thousands_of_patterns(
    service: LeasingBroker,
) -> None:
    broker, me = service.broker, pack_address(("127.0.0.1", 9))
    with dial(service) as greedy, dial(service) as candidate, socket.create_server(("127.0.0.1", 0)) as own:
        for number in range(1000):
            greedy.sendall(pack(PUBLISH, (7, number), pack_address(own.getsockname())))
        await until(lambda: len(broker.registry) == 1000 and not broker.counts["waiting"])
        greedy.sendall(20 * (pack(SUBSCRIBE, (7,), me) + pack(UNSUBSCRIBE, (7,), me)))
        await until(lambda: broker.counts["waiting"] > 0, passes=True)
        candidate.sendall(pack_claim(CLAIM))
        assert [grant.bridge for grant in await grants(candidate, Cutter())] == ["bridge"]
        assert broker.counts["waiting"] > 0


async def test_refused_claims_are_in_the_ledger_by_their_reason(service: LeasingBroker) -> None:
    with dial(service) as sock:
        sock.sendall(pack_claim(CLAIM) + pack_claim(CLAIM._replace(id=78)) + pack(0x80, (), b"?"))
        await until(lambda: len(service.rejected) == 2)
        assert service.rejected == {"a second id of one connection": 1, "not a claim": 1}


async def test_a_lease_that_runs_out_is_passed_on_without_another_claim(service: LeasingBroker) -> None:
    with dial(service) as holder, dial(service) as standby:
        holder.sendall(pack_claim(CLAIM._replace(holding=True, heartbeat_ms=160)))
        assert (await grants(holder, Cutter()))[0].granted
        standby.sendall(pack_claim(CLAIM._replace(id=78, order=1, heartbeat_ms=20_000)))
        cutter, seen = Cutter(), list[Grant]()
        while not seen or not seen[-1].granted:
            seen += await grants(standby, cutter)
        assert [one.granted for one in seen] == [False, True]


async def test_a_report_has_the_first_64_registrations_and_all_leases(service: LeasingBroker) -> None:
    with dial(service) as holder:
        holder.sendall(pack_claim(CLAIM))
        await grants(holder, Cutter())
        for port in range(1, 70):
            service.broker.registry.add(SUB, (port,), ("127.0.0.1", port), "127.0.0.1")
        report = service.report()
    assert (report.name, report.kind, report.urls) == (service.name, "broker", service.urls)
    assert [one["address"] for one in report.lists["registrations"]] == [
        f"127.0.0.1:{port}" for port in range(1, 65)
    ]
    assert [lease.bridge for lease in report.leases] == [CLAIM.bridge]
    assert report.counts["registrations"] == 69


async def test_claims_of_a_candidate_that_has_gone_are_refused_as_such_and_not_as_unsigned() -> None:
    keys, nonce = Keyring([bytes(SECRET_BYTES)]), bytes(NONCE_BYTES)
    service = LeasingBroker(["tcp://127.0.0.1:0"], keys=keys)
    service.open(asyncio.get_running_loop())
    with dial(service) as sock:
        sock.sendall(pack_ask(nonce))
        sock.setblocking(False)
        said = Cutter().cut(await asyncio.get_running_loop().sock_recv(sock, 4096))
        (_, own), *_ = filter(None, map(unpack_answer, said))
        session = Session(keys, nonce, own, CLAIM_TYPE)
        sock.send(b"".join(session.seal(pack_claim(CLAIM)) for _ in range(9)))
    await until(lambda: bool(service.rejected))
    assert list(service.rejected) == ["peer gone"]
    assert [lease.candidates for lease in service.leases()] == [()]
    service.close()
