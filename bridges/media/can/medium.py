"""The record of a CAN or CAN FD bus."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from bridges.items import EXTENDED, FD
from bridges.media.can.adapters import strange, uncoded
from bridges.media.can.codec import SUBJECT_DEFAULT, frame_seconds, transfer_seconds
from bridges.media.can.heartbeat import EVERY_S as HEARTBEAT_S
from bridges.media.can.heartbeat import SIZE_BYTES as HEARTBEAT_BYTES
from bridges.media.can.subjects import COMPACT_BYTES
from bus.confined import Confined
from bus.key_types import CanNode, Delay, Name, Names, PatternKey, QueueBytes, Scalar, pattern_in
from bus.needs import Device, Library, Need, Probe, Sockets
from bus.schema import Range

if TYPE_CHECKING:
    from bridges.media.shedding import Shed
    from bus.hub import Link

from bridges.media.medium import CLOCK_S, SEAL_BYTES, Medium, Problem, Taken, Word
from bridges.media.subject import HEARTBEAT, PORTS, RESERVED_FROM, Subject
from bus.wire.envelope import ENVELOPE_BYTES
from bus.wire.frame import FRAME_BYTES_MIN
from bus.wire.notation import text_of
from bus.wire.pattern import Pattern

LISTENING: dict[str, dict[str, Any]] = {
    "socketcan": {},
    "slcan": {"listen_only": True},
    "vector": {"listen_only": True},
    "nixnet": {"listen_only": True},
    "kvaser": {"driver_mode": False},
    "seeedstudio": {"operation_mode": "silent"},
    "udp_multicast": {},
    "virtual": {},
}
"""The options by which python-can's interfaces let a controller acknowledge nothing; the last two have none.
"""
_OF_GROUPS: Final = {"hop_limit": 255, "port": 65_535}
"""The options of `udp_multicast`, and their most."""
GATHER_MS = 5
_SUBJECTS_MAX = 1024
UDP_PORT = 43113  # the default port of udp_multicast


_ON_SERIAL: Final = ("slcan", "serial", "seeedstudio", "robotell")
"""The interfaces of python-can that open a serial port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Can(Medium):
    """A CAN or CAN FD bus: Cyphal/CAN v1 message transfers."""

    LINK: ClassVar = "bridges.media.can.link:CanLink"
    SPEAKS: ClassVar = "bridges.media.can.spoken:CanSpoken"
    items: ClassVar = ("frames",)
    tmq_items: ClassVar = "frames"
    key: ClassVar = "can"
    signs: ClassVar = True
    seal_bytes: ClassVar = SEAL_BYTES
    clock_s: ClassVar = CLOCK_S
    help: ClassVar = "a CAN bus"
    words: ClassVar = (
        Word(
            "can",
            ("channel",),
            "can:can0?node=42&interface=socketcan&fd=true",
            "a CAN channel; other keys go to python-can",
            needed=("node",),
            spares="listen_only",
            # messages from the command line should arrive, even if the bus is slow
            defaults={"age_ms": 10_000},
        ),
    )

    SHORT: ClassVar = "channel"
    channel: Annotated[str | int, "as the interface names it: `can0`, `/dev/ttyACM0`, `239.74.163.2`"]
    interface: Annotated[
        Name, "python-can's name of the adapter; it opens all but `socketcan` and `udp_multicast`"
    ] = "socketcan"
    fd: Annotated[bool, "the controller is a CAN FD one"] = False
    bitrate: Annotated[
        Annotated[int, Range(1_000, 20_000_000)] | None,
        "bits a second, nominal; SocketCAN takes it from `ip link`, `check` from here",
    ] = None
    data_bitrate: Annotated[
        Annotated[int, Range(1_000, 20_000_000)] | None, "bits a second of the data phase, with `fd`"
    ] = None
    bitrate_switch: Annotated[bool, "send data at `data_bitrate`, with `fd`"] = True
    mixed: Annotated[
        Literal["fd", "classic"], "what is sent where `fd` and classic nodes share the bus; both are heard"
    ] = "fd"
    node: Annotated[
        CanNode | None, "Cyphal node id that no other node of the bus has; the gateway's `node` by default"
    ] = None
    subject: Annotated[int, Range(0, 8191), "Cyphal subject id of TMQ"] = SUBJECT_DEFAULT
    subjects: Annotated[
        Mapping[PatternKey, Subject],
        "Cyphal subjects of single patterns, whole ones: their messages are the data of frames alone",
    ] = field(default_factory=dict)
    listen_only: Annotated[
        bool, "nothing is sent, not even acknowledgements; SocketCAN: set it by `ip link`, too"
    ] = False
    age_ms: Annotated[
        Delay | None,
        "frames that waited longer are not sent, 500 by default; if given, at a takeover, too. A `shed` with "
        "an age stands in",
    ] = None
    queue_bytes: Annotated[QueueBytes, "bound of the queue to the bus"] = 65_536
    gather_ms: Annotated[
        Annotated[float, Range(0, 20)],
        "SocketCAN: while many frames come, they are read once in this time, and the driver has those of "
        "twice that: less processor time, later frames; a lone one is read at once",
    ] = GATHER_MS
    options: Annotated[
        Mapping[Name, Scalar],
        "anything else the python-can interface takes, passed on as it is; `socketcan` takes none",
    ] = field(default_factory=dict)

    def check(self) -> None:
        if self.data_bitrate is not None and not self.fd:
            raise ValueError("data_bitrate needs fd: true")
        if not self.fd and (self.mixed != "fd" or not self.bitrate_switch):
            raise ValueError("mixed and bitrate_switch have no effect without fd: true")
        # A second value in `options` would cause a TypeError when the bus is opened.
        twice = {"channel", "interface", "fd", "bitrate", "data_bitrate"} & set(self.options)
        if twice:
            raise ValueError(f"{', '.join(sorted(twice))} belongs beside options, not in it")
        self._check_options()
        if self.interface == "socketcan" and "/" in str(self.channel):
            raise ValueError(
                f"{self.channel} is no network interface, as SocketCAN has: set interface to slcan, "
                "or to what the adapter speaks"
            )
        self._check_subjects()
        if self.gather_ms != GATHER_MS and self.interface != "socketcan":
            raise ValueError("gather_ms has no effect without socketcan")
        if self.listen_only and self.interface not in LISTENING:
            names = ", ".join(sorted(LISTENING))
            raise ValueError(
                f"listen_only: {self.interface} cannot be told to acknowledge nothing: use {names}"
            )

    def unfit(self, spoken: bool) -> str:
        given = {"node": self.node, "subject": self.subject != SUBJECT_DEFAULT, "subjects": self.subjects}
        idle = " and ".join(key for key, value in given.items() if value)
        return f"with a protocol nothing is sent as Cyphal: leave {idle} out" if spoken and idle else ""

    def _check_options(self) -> None:
        """Raise ValueError for options that would have no effect, where we open the bus ourselves."""
        named = ", ".join(sorted(self.options))
        if self.interface == "socketcan" and self.options:
            raise ValueError(
                f"options: socketcan takes none, and {named} would have no effect: set the interface by "
                "ip link, or name another `interface`"
            )
        if self.interface != "udp_multicast":
            return
        if strange := ", ".join(sorted(self.options.keys() - _OF_GROUPS.keys())):
            raise ValueError(f"options: udp_multicast takes {' and '.join(_OF_GROUPS)}, not {strange}")
        for key, value in self.options.items():
            if type(value) is not int or not 0 <= value <= _OF_GROUPS[key]:
                raise ValueError(f"options: {key} is a whole number up to {_OF_GROUPS[key]}, not {value}")

    def _check_subjects(self) -> None:
        """Raise ValueError unless each pattern has a subject of its own, which is not that of TMQ."""
        if len(self.subjects) > _SUBJECTS_MAX:
            raise ValueError(f"subjects: {len(self.subjects)} given; it takes {_SUBJECTS_MAX} at most")
        if self.subjects and self.subject == HEARTBEAT:
            raise ValueError(f"subject: {HEARTBEAT} is that of heartbeats: choose another")
        patterns, numbers = dict[Pattern, str](), dict[int, str]()
        for text, one in self.subjects.items():
            pattern = Pattern(*pattern_in(text))
            if not pattern:
                raise ValueError("subjects: / is no whole pattern: name one")
            if (other := patterns.setdefault(pattern, text)) != text:
                raise ValueError(f"subjects: {other} and {text} are one pattern")
            if one.number == self.subject:
                raise ValueError(f"subjects: {text}: {one.number} is the subject of TMQ: choose another")
            if one.number == HEARTBEAT:
                raise ValueError(f"subjects: {text}: {HEARTBEAT} is that of heartbeats: choose another")
            if one.number is not None and (other := numbers.setdefault(one.number, text)) != text:
                raise ValueError(f"subjects: {other} and {text} both have {one.number}")

    @property
    def pattern_subjects(self) -> Mapping[Names, Subject]:
        return {pattern_in(text): one for text, one in self.subjects.items()}

    def problems(self) -> Iterator[Problem]:
        rates = {"bitrate": self.bitrate, "data_bitrate": self.data_bitrate}
        wrong = uncoded(rates) if self.interface == "slcan" else strange(self.interface)
        yield from (Problem(text, is_sure, self.where) for text, is_sure in wrong)
        for text, one in self.subjects.items():
            if one.number is None:
                todo = "write a number, or run buscoupler check --write FILE"
                yield Problem(f"{text} has no subject of {one.subject} yet: {todo}", True, one.where)
            elif one.number >= RESERVED_FROM:
                yield Problem(
                    f"{text}: subjects from {RESERVED_FROM} on are those of standard types", False, one.where
                )

    def lines(self) -> Iterator[str]:
        for names, one in self.pattern_subjects.items():
            yield f"{text_of(names)}  {one.words}"

    def _subject_of(self, names: Names) -> Subject | None:
        pattern = Pattern(*names)
        found = (one for some, one in self.pattern_subjects.items() if Pattern(*some) == pattern)
        return next(found, None) if self.subjects else None

    def remarks(self, names: Names) -> Iterator[str]:
        if (found := self._subject_of(names)) is not None:
            yield f"Cyphal {found.words}"

    @property
    def replay_ms(self) -> float | None:
        return self.age_ms

    @property
    def hears_only(self) -> bool:
        return self.listen_only

    @property
    def knows_own(self) -> bool:
        return self.interface == "socketcan"

    @property
    def subjects_of_tmq(self) -> tuple[int, ...]:
        return (*self.subjects_of_messages, *((HEARTBEAT,) if self.subjects else ()))

    @property
    def familiar_subjects(self) -> tuple[int, ...]:
        """The subjects of TMQ, and with `subjects` what other Cyphal nodes tell of themselves."""
        return (*self.subjects_of_tmq, *((PORTS,) if self.subjects else ()))

    @property
    def subjects_of_messages(self) -> tuple[int, ...]:
        """The subjects of TMQ, and of patterns."""
        numbers = (one.number for one in self.subjects.values())
        return (self.subject, *(number for number in numbers if number is not None))

    @property
    def device(self) -> str:
        return f"{self.interface}:{self.channel}"

    @property
    def remote(self) -> bool:
        return self.interface == "socketcand" or "://" in str(self.channel)

    @property
    def sends_fd(self) -> bool:
        return self.fd and self.mixed == "fd"

    def link(self, node: int | None = None, shed: "Shed | None" = None, **retry: Any) -> "Link":
        return Medium.link(replace(self, node=self.node or node), shed=shed, **retry)

    def label(self) -> str:
        rates = "/".join(str(rate) for rate in (self.bitrate, self.data_bitrate) if rate)
        adapter = "" if self.interface == "socketcan" else self.interface
        listens = "listens" if self.listen_only else ""
        words = ("can", adapter, str(self.channel), "FD" if self.fd else "", rates, listens)
        return " ".join(word for word in words if word)

    def wire(self, machine: str) -> str:
        if self.interface == "udp_multicast":
            return f"can {self.channel}:{self.options.get('port', UDP_PORT)}"
        return f"can {self.device} of {machine}"

    @property
    def confined(self) -> Confined | None:
        if self.interface == "virtual":
            return Confined("process", "use interface udp_multicast, or a vcan interface of the kernel")
        if str(self.channel).startswith("loop://"):
            return Confined("process", "loop:// only hears itself: use a device")
        if self.interface == "udp_multicast" and self.options.get("hop_limit", 1) == 0:
            return Confined("machine", "hop_limit is 0", stated=True)
        return None

    @property
    def shared(self) -> bool:
        return True

    def takes(self, node: int | None) -> Iterator[Taken]:
        node = self.node or node
        if node is not None:
            # The identifier on the wire has node and subject: two links collide only if both are equal.
            for subject in self.subjects_of_tmq:
                yield Taken(f"CAN node id {node} (subject {subject:#x})", on_wire=True)

    @property
    def needs_node(self) -> bool:
        return self.node is None and not self.listen_only

    @property
    def libraries(self) -> tuple[Library, ...]:
        """The libraries that open the bus."""
        ours = {"socketcan": (), "udp_multicast": (Library("msgpack", "msgpack", "can"),)}
        serial = (Library("serial", "pyserial", "uart"),) if self.interface in _ON_SERIAL else ()
        return ours.get(self.interface, (Library("can", "python-can", "can"), *serial))

    def needs(self) -> Iterator[Need]:
        yield from self.libraries
        if self.interface == "socketcan":
            yield Sockets("AF_CAN")
            sends_fd = self.sends_fd and not self.listen_only
            yield Probe("bridges.media.can.interfaces:trouble", (str(self.channel), sends_fd))
            if self.listen_only:
                yield Probe("bridges.media.can.listening:trouble", (str(self.channel),))
        else:
            yield Probe("bridges.media.can.link:unknown", (self.interface,))
        if self.interface == "udp_multicast":
            yield Probe("bus.machine.groups:trouble", (str(self.channel),))
        if self.interface == "slcan" and str(self.channel).startswith("/"):
            yield Device(str(self.channel), "plug it in, or look for its name in /dev/serial/by-id")

    def seconds(self, size: int, trunk: bool) -> float | None:
        if self.bitrate is None:
            return None
        return self._transfer_seconds(self.bitrate, size + (ENVELOPE_BYTES if trunk else 0))

    def seconds_of(self, names: Names, size: int, trunk: bool) -> float | None:
        if self.bitrate is None or self._subject_of(names) is None:
            return self.seconds(size, trunk)
        data_bytes = size - FRAME_BYTES_MIN - 4 * len(names)
        return self._transfer_seconds(self.bitrate, data_bytes + (COMPACT_BYTES if trunk else 0))

    def _transfer_seconds(self, bitrate: int, size: int) -> float:
        if not self.sends_fd:
            return transfer_seconds(size, bitrate)
        data_rate = (self.data_bitrate or bitrate) if self.bitrate_switch else bitrate
        return transfer_seconds(size, bitrate, data_rate)

    def item_seconds(self, item: Any) -> float | None:
        identifier, data, marks = item
        if self.bitrate is None:
            return None
        data_rate = (self.data_bitrate or self.bitrate) if marks & FD else None
        return frame_seconds(len(data), self.bitrate, data_rate, bool(identifier & EXTENDED))

    def own_share(self) -> float:
        if not self.subjects or self.listen_only or self.bitrate is None:
            return 0.0
        return self._transfer_seconds(self.bitrate, HEARTBEAT_BYTES) / HEARTBEAT_S

    def refuses(self, item: Any) -> str:
        if not item[2] & FD or self.sends_fd:
            return ""
        return f"is a frame of CAN FD, and none is sent here: write {'mixed: fd' if self.fd else 'fd: true'}"

    def unjudged(self) -> str:
        return "" if self.bitrate else "without bitrate it is unknown whether CAN can carry them"
