"""The status of a running gateway as one JSON document, on a local socket; `buscoupler top` shows it."""

import asyncio
import contextlib
import errno
import json
import os
import socket
import tempfile
import time
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from appliance.compose import Appliance
from bus.hub import Hub, Link, chain
from bus.watched import WatchedHub


def status_socket(only: Collection[str]) -> str:
    """Return the socket's name in the gateway's directory; each process has one."""
    return "-".join(["status", *sorted(only)]) + ".sock"


def runtime_directory() -> Path:
    """Return where this user's running gateways are found: a directory for each topology and gateway."""
    runtime = os.environ.get("XDG_RUNTIME_DIR") or ("/run" if os.geteuid() == 0 else tempfile.gettempdir())
    return Path(runtime) / f"buscoupler-{os.geteuid()}"


def snapshot(appliance: Appliance) -> dict[str, Any]:
    """Return everything there is to see now. Counters are in messages unless a name says bytes."""
    return {
        "time_ns": time.time_ns(),
        "topology": appliance.topology.name,
        "gateway": appliance.gateway,
        "links": [_link(link) for link in appliance.links()],
        "hubs": [_hub(hub) for hub in appliance.hubs()],
        "events": [event._asdict() for event in appliance.monitor.events],
    }


def _link(link: Link) -> dict[str, Any]:
    told = {"state": link.state, "condition": link.condition, "fault": link.fault, "losses": link.losses}
    return {"name": link.name} | {name: value for name, value in told.items() if value}


def _hub(hub: Hub) -> dict[str, Any]:
    cuts = [cut.pipe.name for cut in hub.cuts] if isinstance(hub, WatchedHub) else []
    pipes = [
        {"name": one.name, "balance": one.stats.balance(), **asdict(one.stats)}
        for pipe in hub.pipes
        for one in chain(pipe)
    ]
    return {"name": hub.name, "cuts": cuts, "pipes": pipes}


@dataclass
class StatusServer:
    """A server that answers each connection to `path` with one snapshot, and closes it."""

    path: Path
    appliance: Appliance
    _server: asyncio.AbstractServer | None = None

    async def open(self) -> None:
        """Listen, even if a dead process left its socket file there. Raises `OSError`."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.setblocking(False)
            if probe.connect_ex(str(self.path)) in (0, errno.EAGAIN):  # EAGAIN: others wait there too
                raise FileExistsError(f"{self.path}: another process listens there")
        self.path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._answer, self.path)
        os.chmod(self.path, 0o600)

    async def _answer(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writer.write(json.dumps(snapshot(self.appliance)).encode() + b"\n")
            await writer.drain()
        writer.close()

    def close(self) -> None:
        """Stop listening and remove the socket file."""
        if self._server is not None:
            self._server.close()
            self.path.unlink(missing_ok=True)


def ask(path: Path) -> dict[str, Any]:
    """Return the snapshot of the process that listens on `path`. Raises `OSError` if none does."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))
        with sock.makefile("rb") as answer:
            status: dict[str, Any] = json.load(answer)
    return status
