"""The records of alarms, and of the outlets that tell people of them. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal, get_args
from urllib.parse import urlsplit

from bus.key_types import BusName, Names, Path
from bus.kinds import Kinds
from bus.needs import Need, Probe, Readable, Secret, authority_needs
from bus.schema import Check, Key, Length, Range, Record, Ref, Single
from bus.urls import is_loopback

Stage = Literal["raised", "acknowledged", "cleared"]
STAGES: Final[tuple[Stage, ...]] = get_args(Stage)
"""The states of an alarm, in their order."""
OUTLETS: "Kinds[OutletSpec]" = Kinds(
    "buscoupler.outlets",
    {
        "webhook": "topologies.model.alarms:WebhookSpec",
        "command": "topologies.model.alarms:CommandSpec",
        "mail": "topologies.model.alarms:MailSpec",
    },
)
_Span = Annotated[float, Range(0.1, 604_800)]
_Timeout = Annotated[float, Range(0.1, 600)]
_Value = Annotated[float, Range(-1e11, 1e11)]
_PORTS: Final = {"smtp": 25, "smtps": 465}


def check_webhook(text: str) -> None:
    """Check the address of a webhook. Raises ValueError."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or not _has_port(text):
        raise ValueError("write http://HOST/PATH or https://HOST/PATH")
    if not text.isprintable() or " " in text:
        raise ValueError("an address has printable characters and no blanks")
    if "@" in parts.netloc:
        raise ValueError("credentials in an address end in logs: use token_file")


def _has_port(text: str) -> bool:
    try:
        return urlsplit(text).port != 0
    except ValueError:
        return False


def check_server(text: str) -> None:
    """Check the address of a mail server. Raises ValueError."""
    parts = urlsplit(text)
    right = parts.scheme in _PORTS and parts.hostname and _has_port(text) and "@" not in parts.netloc
    if not right or f"{parts.scheme}://{parts.netloc}" != text:
        raise ValueError("write smtp://HOST or smtps://HOST, with :PORT if it is another")


def server_of(text: str) -> tuple[str, int]:
    """Return the host and the port of a mail server's address."""
    parts = urlsplit(text)
    return parts.hostname or "", parts.port or _PORTS[parts.scheme]


def check_mailbox(text: str) -> None:
    """Check an address of mail. Raises ValueError."""
    name, _, host = text.rpartition("@")
    if not name or not host or not text.isprintable() or any(sign in text for sign in ' <>,;"'):
        raise ValueError(f'"{text[:64]}" is no address of mail, such as ops@example.org')


Mailbox = Annotated[str, Check(check_mailbox, "an address of mail")]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutletSpec(Record):
    """An outlet, which tells people of alarms: one key of its mapping names its kind."""

    # Derive a frozen dataclass from it, as from `DeviceSpec`: `key` is its kind, and one of its fields.
    key: ClassVar[str]
    help: ClassVar[str]

    states: Annotated[
        tuple[Stage, ...], Length(1, 3), Single(), "what it tells of: `raised`, `acknowledged`, `cleared`"
    ] = ("raised", "cleared")

    @property
    def url(self) -> str:
        """The address that it leads to, as a status shows it."""
        raise NotImplementedError

    def needs(self) -> Iterator[Need]:
        """Yield what the machine must have."""
        yield from ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSpec(OutletSpec):
    """A webhook, to which each change is posted as JSON (docs/alarms.md)."""

    key: ClassVar = "webhook"
    help: ClassVar = "posts JSON to a URL"

    webhook: Annotated[
        Annotated[str, Check(check_webhook, "an address such as https://HOST/PATH")], "where to post"
    ]
    ca_file: Annotated[Path | None, "authorities to trust for https; the system's by default"] = None
    token_file: Annotated[Path | None, "a file with a token, sent as `Authorization: Bearer`"] = None
    timeout_s: Annotated[_Timeout, "the longest wait for its answer"] = 10

    def __post_init__(self) -> None:
        if self.ca_file is not None and not self.webhook.startswith("https:"):
            raise ValueError("ca_file is for https:// only")

    @property
    def url(self) -> str:
        parts = urlsplit(self.webhook)  # the path of many webhooks is their secret
        return f"{parts.scheme}://{parts.netloc}"

    def needs(self) -> Iterator[Need]:
        yield from authority_needs(self.ca_file)
        yield from () if self.token_file is None else (Readable(self.token_file), Secret(self.token_file))


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSpec(OutletSpec):
    """A command, run without a shell for each change, one at a time (docs/alarms.md)."""

    key: ClassVar = "command"
    help: ClassVar = "runs a program, with values in its environment"

    command: Annotated[
        tuple[str, ...], Length(1, 64), Single(), "the program by its full path, and its arguments"
    ]
    timeout_s: Annotated[_Timeout, "it is killed after so long"] = 10

    def __post_init__(self) -> None:
        if not self.command[0].startswith("/"):
            raise ValueError(f'"{self.command[0][:64]}": name the program by its full path')

    @property
    def url(self) -> str:
        return self.command[0]

    def needs(self) -> Iterator[Need]:
        yield Probe("bus.machine.programs:trouble", (self.command[0],))


@dataclass(frozen=True, slots=True, kw_only=True)
class MailSpec(OutletSpec):
    """E-mail for each change. `smtp://` uses STARTTLS, except to this machine; `smtps://` begins with TLS."""

    key: ClassVar = "mail"
    help: ClassVar = "sends e-mail"

    mail: Annotated[tuple[Mailbox, ...], Length(1, 64), Single(), "who gets it"]
    sender: Annotated[Mailbox, "who it is from", Key("from")]
    server: Annotated[
        Annotated[str, Check(check_server, "an address such as smtp://HOST:25")], "the mail server"
    ] = "smtp://127.0.0.1"
    user: Annotated[str | None, "its name at the server"] = None
    password_file: Annotated[Path | None, "a file with the password of `user`"] = None
    ca_file: Annotated[Path | None, "authorities to trust for TLS; the system's by default"] = None
    timeout_s: Annotated[_Timeout, "the longest wait for each answer"] = 10

    def __post_init__(self) -> None:
        if (self.user is None) != (self.password_file is None):
            raise ValueError("user and password_file are given together")

    @property
    def url(self) -> str:
        return self.server

    @property
    def starts_tls(self) -> bool:
        """Whether the connection begins in clear text and must change to TLS."""
        return self.server.startswith("smtp:") and not is_loopback(server_of(self.server)[0])

    def needs(self) -> Iterator[Need]:
        yield from authority_needs(self.ca_file)
        if self.password_file is not None:
            yield from (Readable(self.password_file), Secret(self.password_file))


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmSpec(Record):
    """An alarm, raised while frames of a pattern, or a link, are not as they should be (docs/alarms.md)."""

    bus: Annotated[
        tuple[BusName, ...],
        Length(0, 16),
        Single(),
        "buses where the frames are heard and the alarm is announced, the best first; each on another "
        "gateway, of which the first that is there tells people",
    ] = ()
    pattern: Annotated[Names, "the frames; each longer pattern has a state of its own"] = ()
    link: Annotated[
        str | None,
        "instead of frames: the links of a part (`fridge`), or one of them, by its number, medium or address "
        "(`fridge/can`), on each gateway that has it",
    ] = None
    of: Annotated[
        Literal["in", "out", "queued", "dropped"] | None,
        "the value of a link: messages a second, or those that wait",
    ] = None
    missing_s: Annotated[_Span | None, "no such frame for so long, or the link is not up for so long"] = None
    stale_s: Annotated[_Span | None, "a pattern that came once did not come again for so long"] = None
    above: Annotated[_Value | None, "the value is above this"] = None
    below: Annotated[_Value | None, "the value is below this"] = None
    changed_by: Annotated[
        Annotated[float, Range(0, 1e11)] | None, "values within `within_s` differ by so much"
    ] = None
    within_s: Annotated[_Span, "the time in which `changed_by` looks"] = 60
    hysteresis: Annotated[
        Annotated[float, Range(0, 1e11)], "how far the value must come back before the alarm is cleared"
    ] = 0
    for_s: Annotated[Annotated[float, Range(0, 604_800)], "it is raised after so long"] = 0
    clear_for_s: Annotated[Annotated[float, Range(0, 604_800)], "it is cleared after so long"] = 0
    severity: Annotated[
        Literal["warning", "critical"], "a critical one makes the gateway's health `trouble`, else `degraded`"
    ] = "warning"
    text: Annotated[str | None, "what people are told"] = None
    notify: Annotated[
        tuple[Annotated[str, Ref("outlet", ("outlets",))], ...],
        Length(0, 16),
        Single(),
        "outlets that tell people",
    ] = ()

    def __post_init__(self) -> None:
        if text := self._problem():
            raise ValueError(text)

    def _problem(self) -> str:
        """Return what is wrong with the settings together; "" if nothing is."""
        if not self.has_limits and self.missing_s is None and self.stale_s is None:
            return "state what raises it: missing_s, stale_s, above, below or changed_by"
        if self.changed_by == 0:
            return "changed_by is above 0"
        if self.hysteresis and not self.has_limits:
            return "hysteresis is for above, below and changed_by"
        if text := self._endless():
            return f"no value would clear it: {text}"
        if self.link is None:
            return self._problem_of_frames()
        if self.pattern or self.stale_s is not None:
            return "link is instead of pattern and stale_s"
        if self.has_limits != (self.of is not None):
            return "above, below and changed_by of a link need of, and of needs one of them"
        return ""

    def _problem_of_frames(self) -> str:
        if not self.bus:
            return "state the bus of its frames, or a link"
        if self.of is not None:
            return "of is for a link: of frames, it is their values"
        if self.missing_s is not None and (self.has_limits or self.stale_s is not None):
            return "missing_s is about the whole pattern: give it an alarm of its own; stale_s is about each"
        return ""

    def _endless(self) -> str:
        """Return why an alarm that is raised could never be cleared; "" if it could."""
        twice = 2 * self.hysteresis
        if self.above is not None and self.below is not None and self.above - self.below < twice:
            room = f"twice the hysteresis ({twice:g})" if twice else "a value"
            return f"between below ({self.below:g}) and above ({self.above:g}) is no room for {room}"
        if self.changed_by is not None and self.hysteresis >= self.changed_by:
            return f"hysteresis is less than changed_by ({self.changed_by:g})"
        if self.link is not None and self.above is not None and self.above < self.hysteresis:
            return f"a link has no value below 0: hysteresis is at most above ({self.above:g})"
        return ""

    @property
    def has_limits(self) -> bool:
        """Whether values can raise it."""
        return not self.above is self.below is self.changed_by is None

    @property
    def part(self) -> str:
        """The part of `link`, "" for an alarm of frames."""
        return (self.link or "").partition("/")[0]

    @property
    def end(self) -> str:
        """The number, medium or address that chooses one link of `part`, "" for all."""
        return (self.link or "").partition("/")[2]
