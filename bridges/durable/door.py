"""The hub that a link of a trunk opens on, in front of the trunk side of a bus: it finds out who is there.

An end that says hello, and for which the bus keeps a journal, is joined with its `End`. All others are plain
peers; what they send as ends of a durable trunk is taken all the same.
"""

from asyncio import AbstractEventLoop
from collections.abc import Sequence
from functools import partial

from bridges.durable.connection import Connection
from bridges.durable.end import End
from bridges.durable.house import House
from bridges.durable.receiver import Memory
from bridges.durable.settings import JOURNAL
from bridges.durable.sifting import KEEP_ALL, Sieve
from bridges.durable.wire import EndName, Hello
from bus.hub import Hub, Pipe, without
from bus.ledger import Stats
from bus.transports.stream import StreamPipe
from bus.vacancy import Filter
from bus.wire.batch import Batch


class Door(Hub):
    """A hub between a link and `hub`, the trunk side of the bus that `name` names.

    `house` keeps the journal of the bus, None without one; `ends` are the gateways for which this link keeps
    what passes `sieve`. Without `takes` it only sends. With `serves_plain` a peer that says no hello gets
    live traffic; else nothing, where the link keeps for somebody. The accounts of `hub` include all pipes;
    this hub has none of its own.
    """

    __slots__ = (
        "_connections",
        "_ends",
        "_gateways",
        "_memory",
        "_name",
        "_sieve",
        "house",
        "hub",
        "loop",
        "serves_plain",
        "takes",
    )

    def __init__(
        self,
        hub: Hub,
        name: EndName,
        loop: AbstractEventLoop,
        house: House | None = None,
        ends: Sequence[str] = (),
        sieve: Sieve = KEEP_ALL,
        takes: bool = True,
        serves_plain: bool = False,
    ) -> None:
        super().__init__(hub.name)
        self.hub, self.loop, self.house, self.takes, self.serves_plain = hub, loop, house, takes, serves_plain
        self._name, self._gateways, self._sieve = name, tuple(ends), sieve
        self._memory = Memory(0, {})
        self._ends: dict[str, End] = {}
        self._connections: dict[Pipe, Connection] = {}

    @property
    def keeps(self) -> bool:
        """Whether the link keeps what its ends miss, and can now."""
        return bool(self._ends) and self.hello.journal != 0

    @property
    def waits(self) -> bool:
        """Whether the link is to keep what its ends miss, and its journal is not open yet."""
        return bool(self._ends) and not self.recalls

    @property
    def recalls(self) -> bool:
        """Whether it is known here what came before: not while a journal opens."""
        return self.house is None or bool(self.house.journal_id or self.house.fault)

    @property
    def memory(self) -> Memory:
        """The numbers that came here: on disk, if there is a journal and it is open."""
        kept = None if self.house is None else self.house.memory
        return self._memory if kept is None else kept

    @property
    def hello(self) -> Hello:
        """The hello of this end."""
        journal = 0 if self.house is None else self.house.journal_id
        return Hello(self._name, journal, bool(journal))

    @property
    def far(self) -> set[EndName]:
        """The names of the ends that are connected."""
        return {one.far for one in self._connections.values() if one.far is not None}

    def connected(self, pipe: Pipe) -> Pipe | None:
        """Return the pipe by which an end, or a plain peer, is connected by this link; None if it is not."""
        if pipe in self._connections:
            return pipe
        return next((one for one, made in self._connections.items() if made.is_of(pipe)), None)

    @property
    def has_plain(self) -> bool:
        """Whether a peer is there that says no hello, as an older appliance."""
        return any(one.is_plain for one in self._connections.values())

    def end_of(self, name: EndName) -> End | None:
        """Return the end for which this link keeps and that is called so."""
        return self._ends.get(name.gateway)

    @property
    def only_end(self) -> End | None:
        """The end for which this link keeps, if it is one."""
        return next(iter(self._ends.values())) if len(self._ends) == 1 else None

    def plain(self, is_plain: bool, name: EndName | None) -> None:
        """Note that an end, without a name whom the link dials, is there or not any more, as a plain peer."""
        for gateway, end in self._ends.items():
            if name is None or gateway == name.gateway:
                end.is_plain = is_plain

    def enlist(self, link: str, reason: str, filter: Filter | None = None) -> None:
        """Enlist a link. The ends for which it keeps are pipes from now on, whether they are there or not."""
        self.hub.enlist(link, reason, filter)
        if self.house is not None:
            self._keep_for_ends(self.house, link)

    def _keep_for_ends(self, house: House, link: str) -> None:
        for gateway in self._gateways:
            end = self._ends[gateway] = End(gateway, link, self._sieve, house.offer, lambda: self.has_plain)
            self.hub.keep(f"{link}{JOURNAL}", end.files)
            self.hub.attach(end)
            house.enter(end)
        if not house.journal_id:
            house.when_open(self._journal_opened)

    def _journal_opened(self) -> None:
        for connection in list(self._connections.values()):
            connection.journal_opened()

    def strike(self, link: str) -> None:
        for end in self._ends.values():
            self.hub.detach(end)
            if self.house is not None:
                self.house.leave(end)
                end.when_done(partial(self.hub.fold, f"{link}{JOURNAL}", end.files))
        self._ends = {}
        self.hub.strike(link)

    def row(self, link: str) -> str:
        return self.hub.row(link)

    def keep(self, link: str, stats: Stats) -> None:
        """Add counts of no pipe to the accounts of the hub behind."""
        self.hub.keep(link, stats)

    def fold(self, link: str, stats: Stats) -> None:
        """Forget counts of `keep` that are final. They stay in the accounts of the hub behind."""
        self.hub.fold(link, stats)

    def attach(self, pipe: Pipe) -> None:
        """Find out who is at a new pipe; at a link that keeps nothing it is a plain peer at once."""
        stream = pipe if isinstance(pipe, StreamPipe) else pipe.inner
        if not isinstance(stream, StreamPipe):  # inproc: nobody else is in this process
            return self.hub.attach(pipe)
        self.pipes += (pipe,)
        connection = self._connections[pipe] = Connection(self, stream, pipe)
        return connection.begin()

    def detach(self, pipe: Pipe) -> None:
        """Detach a pipe. It is no error if it is not attached."""
        self.pipes = without(self.pipes, pipe)
        connection = self._connections.pop(pipe, None)
        if connection is not None:
            connection.end()
        else:
            self.hub.detach(pipe)

    def welcome(self, pipe: Pipe) -> None:
        """Greet a peer within this process; a connection greets its peer once it knows that it is plain."""
        if pipe not in self._connections:
            self.hub.welcome(pipe)

    def give(self, pipe: Pipe, batch: Batch) -> None:
        self.hub.give(pipe, batch)

    def publish(self, batch: Batch, origin: Pipe | None = None) -> None:
        """Take what came by a pipe."""
        connection = None if origin is None else self._connections.get(origin)
        if connection is None:
            return self.hub.publish(batch, origin)
        return connection.hear(batch)
