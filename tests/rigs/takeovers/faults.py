"""The eight faults of a takeover: real processes and the plant in virtual time cause the same ones."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, Generic, ParamSpec, TypeVar

FAULTS: Final = (
    "stop",
    "kill",
    "freeze",
    "link down",
    "broker down",
    "all brokers down",
    "broker and bridge",
    "partition",
)
Hit = ParamSpec("Hit")
Done = TypeVar("Done")


class Faults(ABC, Generic[Hit, Done]):
    """Whoever can cause each of `FAULTS`, to the gateway that forwards (`Hit`) and to what it stands on."""

    @property
    def acts(self) -> dict[str, Callable[Hit, Done]]:
        """The function that causes each fault, in the order of `FAULTS`."""
        bridges = self.stop, self.kill, self.freeze, self.link_down
        brokers = self.broker_down, self.all_brokers_down, self.broker_and_bridge, self.partition
        return dict(zip(FAULTS, (*bridges, *brokers), strict=True))

    @abstractmethod
    def stop(self, *args: Hit.args, **kwargs: Hit.kwargs) -> Done:
        """End its process in order."""

    @abstractmethod
    def kill(self, *args: Hit.args, **kwargs: Hit.kwargs) -> Done:
        """Kill its process."""

    @abstractmethod
    def freeze(self, *args: Hit.args, **kwargs: Hit.kwargs) -> Done:
        """Stop its process for longer than a lease."""

    @abstractmethod
    def link_down(self, *args: Hit.args, **kwargs: Hit.kwargs) -> Done:
        """Cut its link."""

    @abstractmethod
    def broker_down(self, *args: Hit.args, **kwargs: Hit.kwargs) -> Done:
        """Kill one broker."""

    @abstractmethod
    def all_brokers_down(self, *args: Hit.args, **kwargs: Hit.kwargs) -> Done:
        """Kill all brokers."""

    @abstractmethod
    def broker_and_bridge(self, *args: Hit.args, **kwargs: Hit.kwargs) -> Done:
        """Kill one broker, and its process at the same moment."""

    @abstractmethod
    def partition(self, *args: Hit.args, **kwargs: Hit.kwargs) -> Done:
        """Let nothing pass between its gateway and the brokers; or its trunk, where all forward."""
