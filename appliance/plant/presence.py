"""The presence of a gateway in its plant: what it says of itself there, and when it looks at the others."""

from asyncio import AbstractEventLoop
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from appliance.health.watch import HealthWatch
from appliance.monitor import Monitor
from appliance.parts.build import Part
from appliance.plant.saying import say
from appliance.plant.watch import PlantWatch
from appliance.status.candidates import claims, reports_of_brokers, roles
from appliance.status.overlay import told_marks
from appliance.status.snapshot import brief
from appliance.status.view import Sampled
from bus.steps import Steps, portions
from topologies.model import Topology
from topologies.picture.marks import Mark


class Present(Protocol):
    """The process of a gateway that is present in a plant."""

    gateway: str
    monitor: Monitor
    health: HealthWatch
    plant: PlantWatch

    @property
    def page_url(self) -> str: ...
    @property
    def parts(self) -> Mapping[str, Part]: ...
    @property
    def topology(self) -> Topology: ...


class Presence:
    """The presence of the gateway that the process `of` runs, by the program of version `product`."""

    def __init__(self, of: Present, started_ns: int, product: str) -> None:
        self._of, self.started_ns, self.product = of, started_ns, product

    def look(self, now_s: float, loop: AbstractEventLoop, speaks: bool) -> Iterator[None]:
        """Hear, ask and judge the other gateways, and announce this one to them if this process `speaks`."""
        of, plant = self._of, self._of.plant
        if len(of.topology.gateways) < 2:
            return
        if plant.look(now_s, of.topology, loop, asks=bool(of.page_url)):
            plant.judge(self._note(), claims(reports_of_brokers(of.parts.values())))
        held = [(role["lease"], role["role"]) for role in roles(of.parts.values())]
        changing = of.health.now.word, of.topology.digest, *held
        if speaks and plant.is_due(now_s, changing):
            marks = yield from self._marks()
            say(of.parts.values(), plant.announcement(self._note(), marks, changing))

    def _marks(self) -> Steps[dict[str, Mark]]:
        """Return the marks of the parts of this gateway in the picture, which is not drawn for this."""
        monitor, found = self._of.monitor, dict[str, Mark]()
        sampled = Sampled(rates=monitor.rates.now, down_ms=monitor.down_ms)
        for some in portions(list(self._of.parts.values())):
            found |= told_marks(brief(some, monitor.accounts, sampled))
            yield
        return found

    def _note(self) -> dict[str, Any]:
        """Return what a note, and the verdict on the plant, need of the status of this gateway."""
        of, topology = self._of, self._of.topology
        return {
            "topology": topology.name, "gateway": of.gateway, "file": topology.digest,
            "product": self.product, "started_ns": self.started_ns, "page": of.page_url,
            "gateways": {name: gateway.address for name, gateway in topology.gateways.items()},
            "health": of.health.now.as_record(), "candidates": list(roles(of.parts.values())),
        }  # fmt: skip
