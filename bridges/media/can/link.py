"""A link over a CAN bus: Cyphal/CAN transfers (docs/wire/can.md)."""

import random
from asyncio import AbstractEventLoop
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from bridges.items import EXTENDED
from bridges.media.can.codec import RESERVED, SERVICE, can_id, subject_mask
from bridges.media.can.echo import Echoes
from bridges.media.can.heartbeat import Heartbeat
from bridges.media.can.interfaces import classic, explained
from bridges.media.can.library import open_bus, python_can
from bridges.media.can.listening import trouble
from bridges.media.can.medium import LISTENING, Can
from bridges.media.can.pipe import CanPipe
from bridges.media.can.port import Port, shut_down
from bridges.media.can.python_can import BusPort
from bridges.media.can.raw import Filter, OwnBus, RawBus
from bridges.media.can.restart import Restarter
from bridges.media.can.shared import Shared
from bridges.media.can.slcan import prepare_slcan, said_at
from bridges.media.can.socketcand import connect_once
from bridges.media.can.source import UNFRAMED_BYTES, put_source
from bridges.media.can.state import TROUBLED, BusState
from bridges.media.can.strangers import Strangers
from bridges.media.can.subjects import Subjects
from bridges.media.can.transfers import CyphalNode, LivingPipe, TransferVoice
from bridges.media.device import D, DeviceLink, OpenPipe, PipeContext, need, preload
from bridges.media.shedding import Shed
from bridges.protocols.selection import FILTERS_MAX
from bus.errors import LinkError, words_of
from bus.hub import Hub, Link
from bus.noise import Ear
from bus.text import after

if TYPE_CHECKING:
    from can import BusABC

OpenBus: TypeAlias = "OwnBus | BusABC"
OURS: Final = {"socketcan": "bridges.media.can.raw", "udp_multicast": "bridges.media.can.group"}
"""The interfaces that we open ourselves, without python-can, and the modules that do."""

# interfaces of python-can that can be read without waiting; a thread reads all others
_NEVER_WAITS = ("virtual", "slcan", "socketcand")
AGE_MS = 500  # the longest that a frame waits, unless the topology says otherwise


class CanBus(DeviceLink[D]):
    """The base class of links of a CAN bus: they open it, and give it a voice.

    Messages are dropped above `queue_bytes` (`queue full`) and when they waited longer than `age_ms`
    (`stale`). `shed` replaces both by a policy; `age_ms` still applies if that has no age limit. SocketCAN's
    driver has at most `in_flight` frames, or as many as `window` says, because they are sent late if the bus
    stops for a while. `bus` has the controller's states and errors, `condition` the current state. Raises
    `LinkError` for settings that can never work.
    """

    def __init__(
        self,
        options: Can,
        in_flight: int | None = None,
        jitter: Callable[[float, float], float] = random.uniform,
        shed: Shed | None = None,
        **retry: Any,
    ) -> None:
        self.options = options
        age_s = (AGE_MS if options.age_ms is None else options.age_ms) / 1000
        super().__init__(f"can:{options.device}", shed, options.queue_bytes, age_s, jitter=jitter, **retry)
        if in_flight is not None and in_flight < 1:
            raise LinkError(f"{self.name}: it needs in_flight of at least 1")
        self.bus = BusState()
        unknown(options.interface)  # loads the library here, which takes long, and not when the link opens
        self._shared = Shared(
            self.name, options, self.stats, self.shed, in_flight, self.bus, Echoes(), self.wire_tap
        )

    def _filters(self) -> Sequence[Filter] | None:
        """Return the filters of the kernel; None if all frames are to come."""
        raise NotImplementedError

    @property
    def ear(self) -> Ear:
        if self.options.interface in ("udp_multicast", "virtual"):
            return Ear("datagrams", "another program on this group", sure=32, few=8)
        return Ear(most=UNFRAMED_BYTES)

    @property
    def condition(self) -> str:
        """The state of the controller, `error-active` to `bus-off`; `unknown` if nothing reports it.

        Noise in the input stands in for one that still hears and sends well.
        """
        state = self.bus.state
        return state if state in TROUBLED else super().condition or state

    def revise(self, other: Link) -> bool:
        """Take over the shed policy of another link to this bus, for later openings too."""
        revised = super().revise(other)
        self._shared = replace(self._shared, shed=self.shed)
        return revised

    def _bus_arguments(self) -> dict[str, Any]:
        options = self.options
        rates = {"bitrate": options.bitrate, "data_bitrate": options.data_bitrate}
        arguments: dict[str, Any] = {key: value for key, value in rates.items() if value is not None}
        arguments |= options.options
        if options.listen_only:
            arguments |= LISTENING[options.interface]
        if options.fd:
            arguments["fd"] = True
        return arguments

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Start to open the bus. Raises `LinkError` if a library, or the interface in it, is missing."""
        text = unknown(self.options.interface)  # loads the library, if it is there
        for library in self.options.libraries:
            need(self.name, *library)
        if text:
            raise LinkError(f"{self.name}: {text}")
        super().open(hub, loop)

    def _classic(self) -> str:
        """Return that the interface carries no FD frames, but we send some, and what to do; "" if it does.

        It can change only while the interface is down, so it is asked at each opening.
        """
        options = self.options
        is_wanted = options.interface == "socketcan" and options.sends_fd and not options.listen_only
        return classic(str(options.channel)) if is_wanted else ""

    def _open_bus(self) -> OpenBus:
        """Open the bus. Runs in a worker thread: it may block and raise any exception."""
        channel, interface = str(self.options.channel), self.options.interface
        if self.options.listen_only and interface == "socketcan" and (why := trouble(channel)):
            raise OSError(why)
        try:
            if interface == "socketcan":
                return RawBus(channel, self._filters())
            if interface == "udp_multicast":
                from bridges.media.can.group import GroupBus  # late: it needs MessagePack

                return GroupBus(channel, **{key: int(value) for key, value in self.options.options.items()})
            return self._open_foreign(channel, interface)
        except OSError as error:
            raise OSError(after(explained(error, channel), said_at(channel))) from error
        except Exception as error:
            if said := said_at(channel):
                raise OSError(after(words_of(error), said)) from error
            raise

    def _open_foreign(self, channel: str, interface: str) -> "BusABC":
        """Open a bus of python-can."""
        if interface == "socketcand":
            connect_once()
        bus = open_bus(interface, channel=channel, **self._bus_arguments())
        try:
            if interface == "slcan":
                prepare_slcan(bus, self.options.bitrate, self.options.data_bitrate)
            else:
                put_source(bus)
        except Exception:
            shut_down(bus)
            raise
        return bus

    def _port(self, bus: OpenBus) -> Port:
        waits = self.options.interface not in _NEVER_WAITS
        return bus.port() if isinstance(bus, OwnBus) else BusPort(bus, waits)

    def _restarter(self) -> Restarter:
        return Restarter(str(self.options.channel), self._loop, self._pauses.fresh())


class CanLink(CanBus[OpenBus]):
    """A CAN bus as a link of TMQ: a node, whose id no other node on the bus uses.

    What only listens may be without an id. A node without FD rejects FD frames (`fd on classic`) if its
    interface shows them. A frame with our node id that we did not send is rejected (`conflict`) and logged.
    `spoken_beside`: a protocol reads the frames of others on this bus already, so they are not told.
    """

    def __init__(self, options: Can, spoken_beside: bool = False, **rest: Any) -> None:
        super().__init__(options, **rest)
        if options.node is None and not options.listen_only:
            raise LinkError(f"{self.name}: it needs a node id, 1 to 127")
        looks_at = str(options.channel) if options.interface == "socketcan" else ""
        self.strangers = Strangers(self.name, looks_at, options.familiar_subjects, not spoken_beside)
        node = options.node or 0
        self.node = CyphalNode(
            can_id(options.subject, node),
            self.seals,
            self.strangers,
            Subjects(options.pattern_subjects),
            Heartbeat(node) if options.subjects and not options.listen_only else None,
        )

    def _filters(self) -> Sequence[Filter]:
        heartbeat = self.node.heartbeat
        own = () if heartbeat is None else (heartbeat.filter,)  # else none would be confirmed
        return subject_filters(self.options.subjects_of_messages, own)

    def _open_device(self) -> OpenBus:
        if why := self._classic():
            raise OSError(why)
        return self._open_bus()

    def _release(self, device: OpenBus) -> None:
        shut_down(device)

    def _make_pipe(self, device: OpenBus, context: PipeContext) -> OpenPipe:
        voice = TransferVoice(self._shared, self.node)
        self.strangers.open(self._loop)
        make = LivingPipe if self.node.heartbeat else CanPipe
        return make(self._shared, self._port(device), voice, self._restarter(), context)

    @property
    def condition(self) -> str:
        said = self.strangers.words if self.state == "up" else ""
        state = super().condition
        return said if said and state in ("error-active", "unknown") else state

    def close(self) -> None:
        super().close()
        self.strangers.close()

    def revise(self, other: Link) -> bool:
        if isinstance(other, CanLink):
            self.strangers.revise(other.strangers.is_wanted)
        return super().revise(other)


def unknown(interface: str) -> str:
    """Return what is wrong if there is no interface of that name, and what to do; "" if there is one."""
    if interface in OURS:
        preload(OURS[interface])
        return ""
    try:
        known = python_can().VALID_INTERFACES
    except ImportError:
        return ""  # told by the need of the library
    return "" if interface in known else f"unknown interface: use one of {', '.join(sorted(known))}"


def subject_filters(subjects: Sequence[int], more: Sequence[Filter] = ()) -> Sequence[Filter]:
    """Return kernel filters that pass only messages of these subjects, from any node, and what passes `more`;
    of too many, all messages."""
    pairs = [*map(subject_mask, subjects), *more]
    if len(pairs) > FILTERS_MAX:
        pairs = [(EXTENDED, EXTENDED | SERVICE | RESERVED)]
    return [(identifier | EXTENDED, mask | EXTENDED) for identifier, mask in pairs]
