"""A second kind of device: it answers each message on its buses with a word and the message."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from bus.key_types import BusName, ListenUrl, Names, Path
from bus.needs import Directory, Need
from bus.schema import Single
from devices.device import DeviceSpec, Listener
from devices.service import BusPort, Service


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoSpec(DeviceSpec):
    """A device that says everything again."""

    key: ClassVar = "echo"
    help: ClassVar = "says everything again"
    SERVICE: ClassVar = "tests.devices.echo:Echo"

    echo: Annotated[tuple[BusName, ...], Single(), "the buses that it hears"]
    word: Annotated[str, "what it puts first"] = "echo "
    listen: Annotated[ListenUrl | None, "an address that it takes"] = None
    directory: Annotated[Path | None, "where it would write"] = None
    pattern: Annotated[Names, "what it would hear"] = ()

    @property
    def joins(self) -> tuple[str, ...]:
        return self.echo

    def listens(self) -> Iterator[Listener]:
        if self.listen:
            yield Listener(self.listen, self.where)

    def patterns(self) -> Iterator[tuple[int | str, ...]]:
        yield self.pattern

    def needs(self) -> Iterator[Need]:
        if self.directory:
            yield Directory(self.directory)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParrotSpec(DeviceSpec):
    """Another kind, which the same part runs."""

    key: ClassVar = "parrot"
    help: ClassVar = "says what it heard"
    SERVICE: ClassVar = "tests.devices.echo:Parrot"

    parrot: Annotated[tuple[BusName, ...], Single(), "the buses that it hears"]

    @property
    def joins(self) -> tuple[str, ...]:
        return self.parrot


class Parrot(Service):
    """The service of a parrot."""

    def heard(self, port: BusPort, messages: list[bytes]) -> None:
        port.say(messages)


class Echo(Service):
    """The service of an echo."""

    def heard(self, port: BusPort, messages: list[bytes]) -> None:
        assert isinstance(self.spec, EchoSpec)
        port.say([self.spec.word.encode() + message for message in messages])
