"""One connection of a trunk: whether a durable end is at it, and what comes by it."""

import logging
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Sequence
from typing import Final, Protocol

from bridges.durable.end import End
from bridges.durable.house import House
from bridges.durable.live import Said
from bridges.durable.receiver import Memory, SettledRange, Taken, joined
from bridges.durable.wire import (
    BACKLOG,
    HEAD,
    NO_JOURNAL,
    DurableError,
    EndName,
    Have,
    Hello,
    begins_durable,
    have,
    hello,
    is_durable,
    parse,
)
from bridges.durable.work import Settled
from bus.hub import Hub, Pipe
from bus.journal.ranges import RangeSet
from bus.lateness import LATE_MS, passing_late
from bus.ledger import Stats
from bus.transports.stream import StreamPipe
from bus.wire.batch import Batch, from_payloads, payloads

log = logging.getLogger("buscoupler.bridges")

ROOM_BYTES: Final = 1 << 18
"""Bytes that wait for an end in its connection, at most; the rest waits in the journal."""
HOLD_S: Final = 0.05
"""The time between two looks whether the bus still holds messages back."""
HELLO_S: Final = 1.0
"""The time to wait for a hello, and for our journal, so that we can say ours."""
EARLY_BYTES_MAX: Final = 1 << 20
"""Bytes that wait, for twice `HELLO_S` at most, until it is known who said them: they are not to go back
there."""


class ConnectionPlace(Protocol):
    """The place of a connection: the link that it belongs to, and the side of the bus behind it."""

    hub: Hub
    loop: AbstractEventLoop
    house: House | None

    @property
    def keeps(self) -> bool:
        """Whether the link keeps what its ends miss, and can now."""

    @property
    def waits(self) -> bool:
        """Whether the link is to keep what its ends miss, and its journal is not open yet."""

    @property
    def recalls(self) -> bool:
        """Whether it is known here what came before: not while a journal opens."""

    @property
    def serves_plain(self) -> bool:
        """Whether a peer that says no hello gets live traffic."""

    @property
    def hello(self) -> Hello:
        """The hello of this end."""

    @property
    def memory(self) -> Memory:
        """The numbers that came here."""

    @property
    def takes(self) -> bool:
        """Whether what ends send is taken; else it stays with them."""

    def end_of(self, name: EndName) -> End | None:
        """Return the end for which this link keeps and that is called so."""

    @property
    def only_end(self) -> End | None:
        """The end for which this link keeps, if it is one."""

    def plain(self, is_plain: bool, name: EndName | None) -> None:
        """Note that an end, without a name whom the link dials, is there or not any more, as a plain peer."""


class Connection:
    """One connection. Until it is known who is there, nothing is sent but our hello: who is only slow to
    answer would get new messages before older ones, and no journal would have them.

    A plain peer's pipe is attached to the side. That of an end is not: its `End` is.
    """

    def __init__(self, place: ConnectionPlace, pipe: StreamPipe, attached: Pipe) -> None:
        self._place, self._pipe, self._attached = place, pipe, attached
        self._timer: TimerHandle | None = None
        self._end: End | None = None
        self._far: Hello | None = None
        self._said = Said(pipe)
        self._arrived = list[Taken]()
        self._backlog_last = 0  # the last number of a backlog that came, and was not said to be taken
        self._has_said_hello = self._is_plain = self._was_plain = self._is_closed = False
        self._early, self._early_bytes = list[Batch](), 0
        self._holds = self._is_silent = False

    def begin(self) -> None:
        """Say hello, if we keep for somebody who may be there; else the peer is a plain one for now."""
        if not (self._place.keeps or self._place.waits):
            return self._be_plain()
        if self._place.keeps:
            self._say_hello()
        self._holds = True
        return self._wait()

    def _wait(self) -> None:
        """Wait for a hello."""
        self._end_wait()
        self._timer = self._place.loop.call_later(HELLO_S, self._has_waited)

    def _has_waited(self) -> None:
        """Go on without our journal, or without a hello."""
        place = self._place
        if self._far is not None:
            return self._answer(self._far)
        if place.serves_plain or not (place.keeps or place.waits):
            return self._be_plain()
        if place.waits:
            self._wait()  # the journal may fail
            if not self._has_said_hello:
                return self._say_hello()  # without a journal: the answer tells who is there
        self._is_silent = True
        return self._release()

    def journal_opened(self) -> None:
        """Begin again: with a hello, or where it is too late for one, with a new connection."""
        if self._has_said_hello or (self._place.keeps and self._is_plain):
            return self._pipe.close("its journal has opened")
        if self._far is not None:
            return self._answer(self._far)
        return self.begin() if self._place.keeps else None

    def _say_hello(self) -> None:
        if not self._has_said_hello:
            self._has_said_hello = True
            self.say([hello(self._place.hello)])

    def _be_plain(self) -> None:
        self._end_wait()
        if not (self._is_plain or self._is_closed):
            self._note_plain(True)
            self._was_plain = True
            self._place.hub.attach(self._attached)
            self._place.hub.welcome(self._attached)
        self._release()

    def _hold(self, batch: Batch) -> None:
        """Keep what came before it is known from whom."""
        self._early.append(Batch(batch.keep(), batch.count))
        self._early_bytes += len(batch.data)
        if self._early_bytes > EARLY_BYTES_MAX:
            self._release()

    def _release(self) -> None:
        """Give the bus what came early, and from now on all that comes."""
        early, self._early, self._holds = self._early, [], False
        for batch in early:
            self._place.hub.publish(batch, self._origin)

    def _note_plain(self, is_plain: bool) -> None:
        self._is_plain = is_plain
        if self._far is not None or not self._pipe.accepted:
            self._place.plain(is_plain, self.far if self._pipe.accepted else None)

    def _end_wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def far(self) -> EndName | None:
        """The name of the end; None before its hello, and for a plain peer that says none."""
        return None if self._far is None else self._far.name

    @property
    def is_plain(self) -> bool:
        """Whether nobody is there who acknowledges anything, by what is known after `HELLO_S`."""
        return self._far is None and (self._is_plain or self._is_silent)

    def is_of(self, pipe: Pipe) -> bool:
        """Tell whether a pipe of the hub behind is that of this peer."""
        return pipe is self._origin

    @property
    def syncs(self) -> bool:
        """Whether the end acknowledges after its fdatasync."""
        return self._far is not None and self._far.syncs

    @property
    def _origin(self) -> Pipe:
        """The pipe of the hub that gets nothing of what came: whom we dial is an end also without a hello."""
        is_unknown = self._far is None and not self._is_plain
        guess = self._place.only_end if is_unknown and not self._pipe.accepted else None
        return self._end or guess or self._attached

    @property
    def ledger(self) -> Stats:
        """The ledger of what `live` sends. If the hub had the pipe, that one counts for it to the end."""
        if not self._was_plain:
            return self._pipe.stats
        self._said.settle()
        return self._said.stats

    def say(self, messages: list[bytes]) -> None:
        """Send messages of the durable trunk."""
        self._pipe.say(from_payloads(messages))

    def live(self, batch: Batch) -> bool:
        """Send messages that no journal has; return False if there is no room for them."""
        has_room = self._pipe.has_room(len(batch.data))
        if has_room:
            (self._said.say if self._was_plain else self._pipe.send)(batch)
        return has_room

    @property
    def room_bytes(self) -> int:
        """The bytes that are sent or queued now; more would make new messages wait, or be dropped."""
        return 0 if self._pipe.closed or self._pipe.gone else max(0, ROOM_BYTES - self._pipe.queued_bytes)

    def hear(self, batch: Batch) -> None:
        """Take what came: messages of the durable trunk, and others, which go to the bus."""
        if self._far is None and not self._may_be_durable(batch):
            return self._hear_plain(batch)
        plain = list[bytes]()
        for message in payloads(batch):
            if not is_durable(message):
                self._receive()
                plain.append(message)
                continue
            self._pass_on(plain)
            try:
                self._take(message)
            except DurableError as error:
                self._receive()
                return self._fail(str(error))
        self._receive()
        self._say_taken()
        return self._pass_on(plain)

    def _may_be_durable(self, batch: Batch) -> bool:
        """Tell whether a hello may be in a batch: the first message, or, if it answers ours, any."""
        return HEAD in bytes(batch.data) if self._has_said_hello else begins_durable(batch)

    def _hear_plain(self, batch: Batch) -> None:
        """Give what a plain peer says to the bus. If we said no hello, it stays one."""
        hub = self._place.hub
        if self._holds:
            return self._hold(batch)
        if self._is_plain and not self._has_said_hello and self._attached is self._pipe:
            self._pipe.rehome(hub.publish, lambda _: None)
        return hub.publish(batch, self._origin)

    def _fail(self, why: str) -> None:
        cause = {"cause": f"{self._pipe.link}: {why}", "place": self._pipe.link}
        log.warning("%s: closed: %s", self._pipe.name, why, extra=cause)
        self._origin.stats.reject("malformed")
        self._pipe.close()

    def _pass_on(self, plain: list[bytes]) -> None:
        if plain:
            batch = from_payloads(plain)
            plain.clear()
            if self._holds:
                self._hold(batch)
            else:
                self._place.hub.publish(batch, self._origin)

    def _take(self, message: bytes) -> None:
        said = parse(message)
        if isinstance(said, Hello):
            self._meet(said)
        elif self._far is None:
            raise DurableError("a message of a durable trunk came before its hello")
        elif isinstance(said, Have):
            self._note(said)
        elif self._place.takes:
            self._arrived.append(self._place.memory.take(self._far.journal, said))
            if said.lane & BACKLOG:
                self._backlog_last = self._arrived[-1].marks[0].last

    def _meet(self, far: Hello) -> None:
        """Answer a hello; if our journal is not open, with that, or after a while."""
        if self._far is not None:
            raise DurableError("a second hello came")
        self._far = far
        if self._has_said_hello or self._place.recalls:
            self._answer(far)
        elif self._timer is None:
            self._wait()

    def _answer(self, far: Hello) -> None:
        """Join the end that is there, and say what we have of its journal, which asks for the rest: once we
        know that, or will not."""
        self._say_hello()
        end = self._place.end_of(far.name)
        if end is None:
            self._be_plain()
        elif end is not self._end:
            self._leave_hub()
            self._end = end
            end.join(self)
            self._release()
        if not self._place.recalls:
            return self._wait()
        self._end_wait()
        if far.journal and self._place.takes:
            self.say([have(far.journal, self._place.memory.settled(far.journal))])
        return None

    def replaced(self) -> None:
        """Close: the same end has come by another connection."""
        self._pipe.close()

    def _note(self, said: Have) -> None:
        end, house = self._end, self._place.house
        if end is None or house is None:
            return
        if said.journal == house.journal_id:
            house.heard(end, said.ranges)
        elif said.journal == NO_JOURNAL and said.ranges:
            house.taken(end, said.ranges[-1][1])

    def _say_taken(self) -> None:
        """Say how much of a backlog is taken, before that is acknowledged: a sync is no work of the link."""
        if self._backlog_last:
            self.say([have(NO_JOURNAL, [(self._backlog_last, self._backlog_last)])])
            self._backlog_last = 0

    def _receive(self) -> None:
        """Give the new messages of records to the bus, and acknowledge these once they are kept."""
        arrived, self._arrived = self._arrived, []
        now_ms = int(self._place.loop.time() * 1000)
        for one in joined(arrived):
            taken = self._place.memory.passed(one, now_ms)
            self._origin.stats.reject("duplicate", taken.known)
            if taken.batch is not None:
                self._publish(taken, taken.batch)
            self._settle(taken)

    def _settle(self, taken: Taken) -> None:
        """Acknowledge a record, but not while the bus holds messages: they would end with this process."""
        house, holds = self._place.house, self._place.hub.holds
        if house is not None:
            house.intake.held(taken, holds)
        if holds:
            self._place.loop.call_later(HOLD_S, self._settle, taken)
        elif house is None or house.memory is None:
            self._acknowledge(taken.marks)
        else:
            house.tell(Settled(taken.marks, self._acknowledge))

    def _publish(self, taken: Taken, batch: Batch) -> None:
        house = self._place.house
        if house is not None:
            house.intake.passing(taken)
        try:
            with passing_late(taken.age_ms if taken.age_ms > LATE_MS else 0):
                self._place.hub.publish(batch, self._origin)
        finally:
            if house is not None:
                house.intake.passing(None)

    def _acknowledge(self, marks: Sequence[SettledRange]) -> None:
        far = self._far
        self._place.memory.settle(marks)
        if far is not None and not self._is_closed:
            own = RangeSet((mark.first, mark.last) for mark in marks if mark.journal == far.journal)
            self.say([have(far.journal, list(own))])

    def end(self) -> None:
        """Forget the connection: what was not acknowledged comes again on the next one."""
        self._end_wait()
        self._is_closed = True
        self._release()
        self._leave_hub()
        self._said.end()
        if self._end is not None:
            self._end.leave(self)

    def _leave_hub(self) -> None:
        if self._is_plain:
            self._note_plain(False)
            self._place.hub.detach(self._attached)
