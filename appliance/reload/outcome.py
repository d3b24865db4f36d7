"""The request for a reload and its outcome, as they cross the local socket: one line of JSON each. Pure."""

import json
from dataclasses import asdict, dataclass

from appliance.local.lines import record, text, texts, title

ANSWER_BYTES = 16 << 20


def restart(old: str, new: str) -> str:
    """Return what no reload changes when a topology gets another name; "" if it keeps its name."""
    if old == new:
        return ""
    return f"the name is {new} instead of {old}: its run directory has the old name until it restarts"


@dataclass(frozen=True, slots=True)
class Request:
    """The choice of processes that are to reload: by their `file` and `gateway`; None is any."""

    file: str | None = None
    gateway: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a reload. `error` says why the file was refused: then nothing has changed.

    `changes` has a line for each thing that differs, `failed` one for each that could not be opened, and
    `warnings` one for each of the file. A process that was not meant answers with `meant` False.
    """

    topology: str
    gateway: str
    only: tuple[str, ...]
    file: str
    changes: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    error: str = ""
    meant: bool = True
    warnings: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Name the process."""
        return title(self.topology, self.gateway, self.only)

    @property
    def good(self) -> bool:
        return not (self.error or self.failed)


def pack(message: Request | Outcome) -> bytes:
    """Pack a request or an outcome as one line of JSON."""
    return json.dumps(asdict(message)).encode() + b"\n"


def unpack_request(line: bytes) -> Request:
    """Unpack a request. Raises `ValueError` for anything else."""
    return Request(*(text(record(line), name) for name in ("file", "gateway")))


def unpack_outcome(line: bytes) -> Outcome:
    """Unpack an outcome. Raises `ValueError` for anything else."""
    found = record(line)
    words = {name: str(found.get(name, "")) for name in ("topology", "gateway", "file", "error")}
    lists = {name: texts(found, name) for name in ("only", "changes", "failed", "warnings")}
    return Outcome(**words, **lists, meant=bool(found.get("meant")))  # type: ignore[arg-type]
