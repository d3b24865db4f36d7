"""The gateway's side of an upload: it keeps the uploader's process running, and passes on its reports."""

import logging
from asyncio import AbstractEventLoop
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from devices.child import Child, Work
from devices.device import DeviceSpec
from devices.service import Service
from devices.upload.device import UploadSpec

log = logging.getLogger("buscoupler")

_CREDENTIALS: Final = "AWS_SHARED_CREDENTIALS_FILE"
_DAMAGED: Final = "damaged"
_NOW: Final = ("waiting", "waiting_bytes")  # the counts that may fall


class Upload(Service):
    """An upload. Its counts continue when its process starts again."""

    def __init__(self, name: str, spec: DeviceSpec) -> None:
        super().__init__(name, spec)
        assert isinstance(spec, UploadSpec)
        self._spec = spec
        self._child: Child | None = None
        self._counts: dict[str, int] = {"files": 0, "bytes": 0, "waiting": 0, "waiting_bytes": 0}
        self._rejected: dict[str, int] = {}
        self._before = Counter[str](), Counter[str]()

    @property
    def pid(self) -> int | None:
        """The process id of the uploader while it runs, else None."""
        return None if self._child is None else self._child.pid

    @property
    def counts(self) -> Mapping[str, int]:
        return {name: value + self._before[0][name] for name, value in self._counts.items()}

    @property
    def rejected(self) -> Mapping[str, int]:
        every = self._before[1] + Counter(self._rejected)
        every[_DAMAGED] -= min(self._before[1][_DAMAGED], self._rejected.get(_DAMAGED, 0))  # are seen again
        return {reason: count for reason, count in every.items() if count}

    def start(self, loop: AbstractEventLoop) -> None:
        spec = self._spec
        settings = {
            "name": self.name,
            "gateway": spec.on,
            "directory": spec.upload,
            "to": spec.to,
            "spool_bytes": spec.spool_bytes,
            "every_s": spec.every_s,
        }
        secrets = {} if spec.credentials is None else {_CREDENTIALS: spec.credentials}
        work = Work("the uploader", "devices.upload.uploader", settings, environment=secrets)
        self._child = Child(work, self._on_report, self._on_lost)
        self.state = "up"
        self._child.open(loop)

    def _on_report(self, report: dict[str, Any]) -> None:
        self._counts, self._rejected = report["counts"], report["rejected"]
        self._be(report["state"], report["fault"])

    def _on_lost(self, why: str) -> None:
        self.losses += 1
        ended = {name: value for name, value in self._counts.items() if name not in _NOW}
        self._before = self._before[0] + Counter(ended), Counter(self.rejected)
        self._counts, self._rejected = self._counts | dict.fromkeys(ended, 0), {}
        self._be("waiting", why)

    def _be(self, state: Any, fault: str) -> None:
        if state == "waiting" and (self.state, self.fault) != (state, fault):
            log.warning("%s: %s; will go on trying", self.name, fault)
        self.state = state
        self.fault = fault or self.fault

    def stop(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None
