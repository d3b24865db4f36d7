"""The links of a candidate to its brokers, which a reload changes."""

from asyncio import AbstractEventLoop
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from bus.keys import Keyring
from bus.leases.candidate import Candidate, Reach
from bus.leases.link import BrokerLink
from bus.tmq.wire import Address
from bus.transports.secure import Security

Securities = Mapping[Address, Security]
MakeLink = Callable[[Candidate, int, Address, Callable[[], object]], BrokerLink]


class BrokerLinks:
    """The links of a `candidate` to `brokers`, each with a number by which the candidate knows the broker.

    `make(candidate, number, address, judge)` makes one, which calls `judge()` after an answer. With `keys`
    claims are signed; `security` has the TLS settings of brokers that use TLS. `unsaid` counts announcements
    that a broker did not get, by reason.
    """

    def __init__(
        self,
        candidate: Candidate,
        brokers: Sequence[Address],
        judge: Callable[[], object],
        make: MakeLink,
        keys: Keyring | None,
        security: Securities,
    ) -> None:
        self.unsaid = Counter[str]()
        self._candidate, self._judge, self._make = candidate, judge, make
        self._keys, self._secured = keys, security
        self._numbers = {address: number for number, address in enumerate(brokers)}
        self._by_number = {number: self._made(address) for address, number in self._numbers.items()}
        self._loop: AbstractEventLoop | None = None

    def _made(self, address: Address) -> BrokerLink:
        link = self._make(self._candidate, self._numbers[address], address, self._judge)
        link.sign(self._keys)
        link.secure(self._secured.get(address))
        return link

    def open(self, loop: AbstractEventLoop) -> None:
        """Open all links."""
        self._loop = loop
        for link in list(self._by_number.values()):
            link.open(loop)

    def claim(self, resign: bool) -> None:
        """Send a claim to each broker, or with `resign` that the candidate gives up the lease."""
        for link in list(self._by_number.values()):
            link.claim(resign)

    def announce(self, frame: bytes, told: set[Address]) -> None:
        """Send an announcement of this gateway to brokers that are not `told` yet, and add them to these.

        Count each that is not sent.
        """
        for address, number in self._numbers.items():
            if address in told:
                continue
            if why := self._by_number[number].announce(frame):
                self.unsaid[why] += 1
            else:
                told.add(address)

    def away(self, now_s: float, for_s: float) -> Iterator[tuple[Address, Reach]]:
        """Yield brokers that have not answered for so long, and whether they refuse or are unreachable."""
        for address, number in self._numbers.items():
            view = self._candidate.view(number)
            if view.reach in ("refused", "unreachable") and now_s - view.since_s >= for_s:
                yield address, view.reach

    def revise(self, brokers: Sequence[Address], keys: Keyring | None, security: Securities) -> None:
        """Change to other brokers, keys, TLS settings, and the pace of the candidate."""
        self._keys, self._secured = keys, security
        for address, number in self._numbers.items():
            self._by_number[number].keep_pace()
            self._by_number[number].sign(keys)
            self._by_number[number].secure(security.get(address))
        for address in [address for address in self._numbers if address not in brokers]:
            number = self._numbers.pop(address)
            self._by_number.pop(number).close()
            self._candidate.drop_broker(number)
        for address in [address for address in brokers if address not in self._numbers]:
            self._add(address)

    def _add(self, address: Address) -> None:
        now_s = 0.0 if self._loop is None else self._loop.time()
        number = self._numbers[address] = self._candidate.add_broker(now_s)
        link = self._by_number[number] = self._made(address)
        if self._loop is not None:
            link.open(self._loop)

    def close(self) -> None:
        """Close all links. Idempotent."""
        for link in list(self._by_number.values()):
            link.close()
        self._loop = None
