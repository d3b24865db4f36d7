"""The reload of a running gateway from its file. Links that stay keep their pipes."""

import asyncio
import logging
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeAlias

from appliance.compose import Appliance
from appliance.following import Following
from appliance.local.places import is_meant
from appliance.parts.changes import Change
from appliance.process.notify import reloading
from appliance.reload.outcome import Outcome, Request, restart
from bus.errors import BusError, TopologyError
from bus.machine.aside import aside
from bus.machine.files import NotRegular, check_regular, unfit_pem
from bus.needs import Authorities, Certificate
from topologies.checks.needs import needs_of
from topologies.loading.loader import STDIN
from topologies.resolved.resolve import resolve
from topologies.wiring.segments import Wiring

log = logging.getLogger("buscoupler")

Checked: TypeAlias = Callable[[str, Callable[[str], None]], Wiring]


class Reloader:
    """Reloads `appliance` from `file`, one reload after the other. `checked(file, tell)` loads and checks it,
    and tells its warnings.

    A thread reads the file, works out what each part needs, and compares that with what runs: traffic goes on
    meanwhile. The event loop only makes the change. A file that does not answer, as on a network that hangs,
    ends the reload after some seconds. `only` names what this process runs.
    """

    def __init__(
        self,
        appliance: Appliance,
        file: str,
        checked: Checked,
        only: Collection[str] = (),
    ) -> None:
        self._appliance, self._checked, self._only = appliance, checked, tuple(sorted(only))
        self.file = STDIN if file == "-" else str(Path(file).absolute())
        self._name = appliance.topology.name
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[Outcome] | None = None

    def on_signal(self) -> None:
        """Reload for nobody in particular: the log has the outcome."""
        self._task = asyncio.get_running_loop().create_task(self.reload())

    def is_meant(self, request: Request) -> bool:
        """Return whether a request is for this process."""
        return is_meant(request.file, request.gateway, self.file, self._appliance.gateway)

    def outcome(
        self,
        changes: Collection[Change] = (),
        error: str = "",
        meant: bool = True,
        warnings: Collection[str] = (),
    ) -> Outcome:
        """Return an outcome of this process."""
        return Outcome(
            self._appliance.topology.name,
            self._appliance.gateway,
            self._only,
            self.file,
            (*self._renamed(), *(change.line() for change in changes if change.verb != "failed")),
            tuple(change.line() for change in changes if change.verb == "failed"),
            error,
            meant,
            tuple(warnings),
        )

    def _renamed(self) -> list[str]:
        """Return a line if the topology has another name than when this process began."""
        found = restart(self._name, self._appliance.topology.name)
        return [f"restart: {found}"] if found else []

    async def reload(self) -> Outcome:
        """Apply the file as it is now. Everything goes on as before if it has errors."""
        async with self._lock:
            with reloading():
                outcome = await self._apply()
        self._log(outcome)
        return outcome

    async def _apply(self) -> Outcome:
        try:
            warnings = list[str]()
            following = await aside(lambda: self._prepare(warnings.append))
            return self.outcome(self._appliance.change(following), warnings=warnings)
        except BusError as error:
            return self.outcome(error=str(error))
        except Exception as error:  # a defect of ours must not end the gateway
            log.exception("%s: the reload failed", self.file)
            return self.outcome(error=f"the reload failed: {error!r}; the gateway's log has more")

    def _prepare(self, tell: Callable[[str], None]) -> Following:
        """Return the reload from the file as it is now, ready to be made. Tell the warnings of the file."""
        wiring = self._read(tell)
        self._check_certificates(wiring)
        return self._appliance.prepare(resolve(wiring, self._appliance.gateway))

    def _check_certificates(self, wiring: Wiring) -> None:
        """Raise `TopologyError` for a file that somebody is still writing: links go on with the old one."""
        for _, need in needs_of(wiring, self._appliance.gateway):
            if isinstance(need, Certificate | Authorities) and (found := unfit_pem(need.files)):
                raise TopologyError(found)

    def _read(self, tell: Callable[[str], None]) -> Wiring:
        if self.file == STDIN:
            raise TopologyError(f"{STDIN} cannot be read again: run the topology from a file to reload it")
        try:
            check_regular(self.file)
        except NotRegular as error:
            raise TopologyError(f"{self.file} cannot be read again: {error}") from None
        except OSError:
            pass  # `load` says what is wrong
        return self._checked(self.file, tell)

    def _log(self, outcome: Outcome) -> None:
        if outcome.error:
            text = "%s was not applied, and the gateway goes on as before:\n%s"
            log.error(text, outcome.file, outcome.error)
            return
        for line in outcome.changes:
            log.info("reload: %s", line)
        for line in outcome.failed:
            log.error("reload: %s", line)
        if not outcome.changes and not outcome.failed:
            log.info("reload: nothing differs")
