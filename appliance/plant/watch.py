"""The watch on the other gateways of a plant: asks them every few seconds."""

import logging
from asyncio import AbstractEventLoop, Task
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from appliance.plant.asking import Heard, ask_others
from appliance.plant.note import note_of
from appliance.plant.places import Place, places
from appliance.plant.verdict import Seen, doubled, judged
from appliance.status.silent import HEARD_MS
from topologies.model import Topology

log = logging.getLogger("buscoupler")

EVERY_S: Final = 5.0
"""Between two looks; for more than 25 gateways longer, so that each is asked five times a second at most."""
_SHARE_S: Final = 0.2
_LEVELS = {"ok": logging.INFO, "degraded": logging.WARNING, "trouble": logging.WARNING}

Ask = Callable[[str, Sequence[str], Sequence[Place]], Awaitable[dict[str, Heard]]]


class PlantWatch:
    """The knowledge that this gateway has of the others.

    `record` makes an event when the word for the plant changes.

    A gateway that does not answer once keeps its last answer until the next look.
    """

    def __init__(self, gateway: str, record: Callable[..., Any], ask: Ask = ask_others) -> None:
        self._gateway, self._record, self._ask = gateway, record, ask
        self._heard: Mapping[str, Heard] = {}
        self._missed = frozenset[str]()
        self._there = set[str]()
        self._twice = frozenset[str]()
        self._word, self._due_s = "ok", float("-inf")
        self._task: Task[None] | None = None

    def look(self, now_s: float, topology: Topology, loop: AbstractEventLoop) -> bool:
        """Ask the others, if it is time. Return whether it was. `now_s` is monotonic."""
        others = [name for name in topology.gateways if name != self._gateway]
        if not others or now_s < self._due_s or (self._task is not None and not self._task.done()):
            return False
        self._due_s = now_s + max(EVERY_S, _SHARE_S * len(others))
        where = list(places(topology, self._gateway))
        self._task = loop.create_task(self._go(topology.name, others, where), name="plant")
        return True

    async def _go(self, topology: str, others: Sequence[str], where: Sequence[Place]) -> None:
        try:
            self.take(await self._ask(topology, others, where))
        except Exception:  # a defect of ours must not end the watch
            log.exception("the other gateways could not be asked")

    def take(self, heard: Mapping[str, Heard]) -> None:
        """Take the answers of one look."""
        silent = frozenset(
            name for name in {*heard, *self._there} if name not in heard or not heard[name].note
        )
        new = {name: one for name, one in heard.items() if one.note is not None or name in self._missed}
        kept = {name: one for name, one in self._heard.items() if name in silent - self._missed}
        self._heard, self._missed = kept | new, silent
        self._there |= heard.keys() - silent

    def shown(self, status: Mapping[str, Any]) -> dict[str, Any]:
        """Return the plant as a status has it, from the status of this gateway."""
        return self._judged(status, heard_ms(status))

    def _judged(self, status: Mapping[str, Any], claims: Mapping[str, int]) -> dict[str, Any]:
        return judged(note_of(status), status["gateways"], self._seen(status, claims), self._twice)

    def _seen(self, status: Mapping[str, Any], claims: Mapping[str, int]) -> dict[str, Seen]:
        return {
            name: Seen(self._heard.get(name), name in self._there, claims.get(name, HEARD_MS) < HEARD_MS)
            for name in status["gateways"]
        }

    def judge(self, status: Mapping[str, Any], claims: Mapping[str, int]) -> None:
        """Record an event if the plant has another word than at the last look.

        `status` has what a note and the verdict need; `claims` are the ages in ms of claims at brokers here.
        """
        shown = self._judged(status, claims)
        notes = {name: one.note for name, one in self._heard.items() if one.note is not None}
        self._twice = frozenset(doubled({self._gateway: note_of(status), **notes}))
        if shown["word"] != self._word:
            self._word = shown["word"]
            self._record("health", "plant", shown["line"], _LEVELS[shown["word"]])

    @property
    def answering(self) -> frozenset[str]:
        """The other gateways that have answered."""
        return frozenset(name for name, heard in self._heard.items() if heard.note is not None)

    def marks(self) -> dict[str, Any]:
        """Return the marks that the others have said of their own things in the picture."""
        found = dict[str, Any]()
        for heard in self._heard.values():
            if heard.note is not None:
                found |= heard.note.get("marks", {})
        return found

    def close(self) -> None:
        """Ask no more. Idempotent; an answer that is under way is not waited for."""
        if self._task is not None:
            self._task.cancel()
            self._task = None


def heard_ms(status: Mapping[str, Any]) -> dict[str, int]:
    """Return the age of the last claim of each gateway at a broker of a status, in milliseconds."""
    found = dict[str, int]()
    for lease in (lease for broker in status["brokers"] for lease in broker["leases"]):
        for one in lease["candidates"]:
            found[one["name"]] = min(one["silent_ms"], found.get(one["name"], HEARD_MS))
    return found
