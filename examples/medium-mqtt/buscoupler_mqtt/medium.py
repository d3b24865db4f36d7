"""The record of a side at an MQTT broker: its settings and facts. buscoupler finds it by its entry point."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, NamedTuple
from urllib.parse import urlsplit

from bridges.media.medium import Medium, Passing, Taken, Word
from bus.key_types import Path, Patterns, QueueBytes
from bus.needs import Directory, Need, Readable, Room, Secret, host_needs, proof_needs
from bus.schema import Check, Length, Range, Record, Single
from bus.transports.options import Tls
from bus.urls import check_host, is_wildcard
from buscoupler_mqtt.topics import check_filter, check_topic, start_of, widest

PORTS = {"mqtt": 1883, "mqtts": 8883}
SESSION_S = 3600
_FORM = "write mqtt://HOST:PORT, or mqtts://HOST:PORT for TLS"


class Address(NamedTuple):
    """The address of a broker; `secure` says that it uses TLS."""

    host: str
    port: int
    secure: bool


def address_of(url: str) -> Address:
    """Return the parts of an address; `mqtt://` may be left out. Raises ValueError with the reason."""
    parts = urlsplit(url if "://" in url else f"mqtt://{url}")
    if parts.scheme not in PORTS or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError(_FORM)
    if "@" in parts.netloc:
        raise ValueError(f"{_FORM}: the name goes to user, the password to password_file")
    host = parts.hostname or ""
    check_host(host)
    if is_wildcard(host):
        raise ValueError(f'"{host}" can be listened on, not dialled: name a host')
    return Address(host, parts.port or PORTS[parts.scheme], parts.scheme == "mqtts")


def _check_url(url: str) -> None:
    address_of(url)


Url = Annotated[str, Check(_check_url, "an address such as mqtt://HOST:1883 or mqtts://HOST:8883")]
TopicFilter = Annotated[str, Check(check_filter, "a topic, which may have + and #")]
Topic = Annotated[str, Check(check_topic, "a topic")]


@dataclass(frozen=True, slots=True)
class Spool(Record):
    """Files in which messages wait for the broker, and which survive the end of the gateway."""

    SHORT: ClassVar = "directory"
    directory: Annotated[Path, "a directory of its own for this side; it is made"]
    bytes: Annotated[int, Range(1 << 20, 1 << 40), "most bytes in these files"] = 64 << 20
    sync: Annotated[bool, "wait for the disk, so that messages also survive a power cut"] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqtt(Medium):
    """A broker of MQTT 5: the bridge publishes its frames there, and subscribes to topics."""

    LINK: ClassVar = "buscoupler_mqtt.link:MqttLink"
    SHORT: ClassVar = "url"
    key: ClassVar = "mqtt"
    help: ClassVar = "an MQTT broker"
    words: ClassVar = (
        Word(
            "mqtt",
            ("url",),
            "mqtt:HOST:1883?prefix=plant",
            "an MQTT broker",
            defaults={"subscribe": ("#",)},
            unused=("subscribe", "will"),
        ),
    )
    selective: ClassVar = True
    plain: ClassVar = True
    named: ClassVar = True

    url: Annotated[Url, "the broker: `mqtt://HOST:1883`, or `mqtts://HOST:8883` for TLS"]
    subscribe: Annotated[
        tuple[TopicFilter, ...],
        Length(0, 1024),
        Single(),
        "topics that come in, with + and #; none by default",
    ] = ()
    publish: Annotated[Patterns, "what starts with one of these goes out; by default everything"] = ((),)
    retain: Annotated[Patterns, "what starts with one of these is published as retained"] = ()
    prefix: Annotated[Topic | None, "stands before every topic"] = None
    qos: Annotated[int, Range(0, 1), "quality of service, both ways"] = 1
    client_id: Annotated[
        Annotated[str, Length(1, 128)] | None,
        "one that no other client has; the broker makes one up by default, and keeps no session",
    ] = None
    session_s: Annotated[
        Annotated[int, Range(0, 0xFFFFFFFE)] | None,
        "with `client_id`: the broker keeps messages for so long while we are away; 3600 by default",
    ] = None
    will: Annotated[Topic | None, "the topic where `online` or `offline` is retained"] = None
    user: Annotated[Annotated[str, Length(1, 256)] | None, "name of the user"] = None
    password_file: Annotated[Path | None, "the first line of this file is the password"] = None
    tls: Annotated[Tls | None, "certificates, for `mqtts://`"] = None
    keepalive_s: Annotated[int, Range(1, 65_535), "a broker that is silent for two of these is lost"] = 30
    levels: Annotated[int, Range(1, 255), "most levels of a topic that the broker takes"] = 200
    queue_bytes: Annotated[QueueBytes, "bound of what waits in memory"] = 1 << 20
    spool: Annotated[Spool | None, "what waits for the broker is kept in files"] = None

    def check(self) -> None:
        widest(self.subscribe)
        if self.session_s is not None and self.client_id is None:
            raise ValueError("session_s has no effect without client_id")
        if self.password_file and not self.user:
            raise ValueError("password_file has no effect without user")
        if self.spool and not self.qos:
            raise ValueError("spool needs qos: 1: without an answer of the broker nothing may be deleted")
        if self.tls:
            self._check_tls(self.tls)

    def _check_tls(self, tls: Tls) -> None:
        if not self.address.secure:
            raise ValueError("tls is for mqtts:// only")
        if tls.require_peer_cert:
            raise ValueError("require_peer_cert has no effect here: the broker always needs a certificate")
        if tls.key_file and not tls.cert_file:
            raise ValueError("key_file has no effect without cert_file")

    @property
    def address(self) -> Address:
        return address_of(self.url)

    @property
    def device(self) -> str:
        host, port, _ = self.address
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def expiry_s(self) -> int:
        """The time in seconds for which the broker keeps the session after a disconnect."""
        if self.client_id is None:
            return 0
        return SESSION_S if self.session_s is None else self.session_s

    @property
    def own_names(self) -> Iterable[int | str]:
        """The names in the patterns of the settings."""
        return (name for pattern in (*self.publish, *self.retain) for name in pattern)

    def mute(self) -> "Mqtt":
        return replace(self, subscribe=())

    def wire(self, machine: str) -> str:
        return f"mqtt {self.device}"

    @property
    def passing(self) -> Passing:
        return Passing(tuple(map(start_of, self.subscribe)), self.publish, ("subscribe", "publish"))

    def takes(self, node: int | None) -> Iterator[Taken]:
        if self.client_id:
            yield Taken(f"client id {self.client_id}", on_wire=True)
        if self.will:
            yield Taken(f"will {'/'.join(filter(None, (self.prefix, self.will)))}", on_wire=True)
        if self.spool:
            yield Taken(f"spool {self.spool.directory}")

    def needs(self) -> Iterator[Need]:
        yield from host_needs(self.address.host)
        if self.password_file:
            yield Secret(self.password_file)
        if self.spool:
            yield Directory(self.spool.directory)
            yield Room(self.spool.directory, self.spool.bytes, "bytes of the spool")
        if self.tls and self.tls.ca_file:
            yield Readable(self.tls.ca_file)
        if self.tls:
            yield from proof_needs(self.tls)
