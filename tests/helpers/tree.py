"""The packages of the product: which may import which, and which modules are without I/O."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.helpers import ROOT

MAY_IMPORT = {
    "bus": set[str](),
    "bridges": {"bus"},
    "capture": {"bus"},
    "devices": {"bus", "capture"},
    "topologies": {"bus", "bridges", "devices"},
    "pipeline": {"bus", "bridges", "capture"},
    "appliance": {"bus", "bridges", "capture", "devices", "pipeline", "topologies"},
    "buscoupler": {"bus", "appliance"},
}
PURE = [  # beside every module whose docstring claims it
    "bus/backoff.py",
    "bus/errors.py",
    "bus/watch/canaries.py",
    "bus/watch/held.py",
    "bus/watch/loops.py",
    "bus/watch/trials.py",
    "bus/names.py",
    "bus/transports/framing.py",
    "bus/schema.py",
    "bus/transports/options.py",
    "bus/urls.py",
    "bus/wire/*.py",
    "bus/tmq/wire.py",
    "bus/tmq/broker/registry.py",
    "bus/journal/ranges.py",
    "bus/journal/record.py",
    "bus/journal/segment.py",
    "bus/leases/wire.py",
    "bus/leases/candidate.py",
    "bus/leases/group.py",
    "bus/leases/table.py",
    "bridges/admission.py",
    "bridges/forms.py",
    "bridges/ingress.py",
    "bridges/judge.py",
    "bridges/rules.py",
    "bridges/runs.py",
    "bridges/handover/heard.py",
    "bridges/handover/outcome.py",
    "bridges/handover/sides.py",
    "bridges/handover/window.py",
    "bridges/handover/stamps.py",
    "bridges/media/shedding.py",
    "bridges/media/medium.py",
    "bridges/media/*/medium.py",
    "bridges/media/can/codec.py",
    "bridges/media/can/socketcan.py",
    "bridges/media/can/state.py",
    "bridges/media/i2c/mailbox*.py",
    "bridges/media/multicast/datagram.py",
    "bridges/media/multicast/fragments.py",
    "bridges/media/rtnetlink.py",
    "bridges/media/tcp/frames.py",
    "bridges/media/uart/address.py",
    "bridges/media/uart/codec.py",
    "bridges/media/uart/echo.py",
    "bridges/media/uart/poll.py",
    "bridges/media/uart/rfc2217.py",
    "bridges/protocols/lines/protocol.py",
    "bridges/protocols/modbus/protocol.py",
    "bridges/protocols/p1/protocol.py",
    "bridges/protocols/queries/protocol.py",
    "bridges/protocols/vedirect/protocol.py",
    "bridges/protocols/xbee/protocol.py",
    "devices/device.py",
    "devices/*/device.py",
    "devices/dbp/*/device.py",
    "devices/tap/writer_backoff.py",
    "appliance/status/ending.py",
]
CLAIM = re.compile(r"\bpure\b|\b(no|without|sans)[ -]I/O\b", re.IGNORECASE)


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements of a tree, and what has some: no expression is walked, of which there are most."""
    for block in ("body", "handlers", "cases", "orelse", "finalbody"):
        for node in getattr(tree, block, ()):
            yield node
            yield from statements(node)


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@cache
def claims_purity(path: Path) -> bool:
    """Return whether the docstring of a module says that it is without I/O."""
    text = path.read_text()  # most do not have the words anywhere
    return bool(CLAIM.search(text) and CLAIM.search(ast.get_docstring(ast.parse(text)) or ""))


def pure_modules() -> list[str]:
    """Return the paths of the modules without I/O."""
    found = {path for pattern in PURE for path in ROOT.glob(pattern)}
    found |= {path for package in MAY_IMPORT for path in modules(package) if claims_purity(path)}
    return sorted(str(path.relative_to(ROOT)) for path in found if path.stem != "__init__")
