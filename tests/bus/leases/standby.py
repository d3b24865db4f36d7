"""A candidate with one broker and no bridge, for tests of the connection between the two."""

import asyncio

import pytest

from bus.keys import Keyring
from bus.leases.candidate import Candidate
from bus.leases.link import BrokerLink
from bus.leases.service import LeasingBroker
from bus.leases.wire import LEASE_MS
from bus.transports.secure import Security
from tests.helpers.peers import until


class Standby:
    """A candidate with a connection to one broker, and no bridge."""

    def __init__(
        self,
        address: tuple[str, int],
        keys: Keyring | None,
        id: int = 7,
        security: Security | None = None,
        lease_ms: int = LEASE_MS,
    ) -> None:
        self.candidate = Candidate((1,), "x", id, 0, 1, "gw-a", lease_ms)
        self.candidate.links(up=True)
        self.link = BrokerLink(self.candidate, 0, address, lambda: None)
        self.link.sign(keys)
        self.link.secure(security)
        self.link.open(asyncio.get_running_loop())

    async def granted(self) -> None:
        def beat() -> bool:
            self.link.claim()
            return self.candidate.holding

        await until(beat)

    async def answered(self) -> None:
        def beat() -> bool:
            self.link.claim()
            return self.candidate.views[0].grant is not None

        await until(beat)

    async def refused(self, service: LeasingBroker, reason: str) -> None:
        def beat() -> bool:
            self.link.claim()
            return reason in service.rejected

        await until(beat)
        assert not self.candidate.holding
        assert self.candidate.views[0].grant is None


def words(caplog: pytest.LogCaptureFixture, logger: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == logger]
