"""`buscoupler install FILE`: make a gateway's part of a topology a hardened service of systemd."""

import argparse
import socket
import sys
from pathlib import Path

from appliance.commands.run import checked
from appliance.service.files import check_free, put
from appliance.service.plan import NAME, plan_of
from appliance.service.readable import unreadable
from appliance.service.texts import files_of
from bus.errors import TopologyError
from bus.extras import DISTRIBUTION
from topologies.model import gateway_here


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the topology, where the service will read it")
    parser.add_argument(
        "--gateway",
        metavar="NAME",
        help="the name of this gateway; by default that of this host, or the only one",
    )
    service_arguments(parser)
    parser.add_argument("--dry-run", action="store_true", help="print the files, and write nothing")
    parser.add_argument(
        "--program", metavar="PATH", help="the program that the service runs; by default this one"
    )


def service_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that `install` and `uninstall` share."""
    parser.add_argument("--name", default=NAME, help=f"the service, its user, and its directories ({NAME})")
    parser.add_argument(
        "--root", type=Path, default=Path("/"), metavar="DIR",
        help="write below DIR, the root of an image or a package",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    topology = checked(options.file)
    gateway = options.gateway or gateway_here(topology, socket.gethostname())
    if gateway not in topology.gateways:
        raise TopologyError(f'no gateway "{gateway}" in {topology.name}: {", ".join(topology.gateways)}')
    file = _inside(Path(options.file).resolve(), options.root.resolve())
    command = [options.program] if options.program else _program()
    plan = plan_of(topology, gateway, options.name, command, file)
    check_free(plan, options.root)
    files = files_of(plan)
    if options.dry_run:
        print("\n".join(f"## {path}\n{text}" for path, text in files.items()), end="")
        return 0
    print("\n".join(put(files, options.name, options.root)))
    for line in unreadable(plan, options.root):
        print(f"buscoupler install: {line}", file=sys.stderr)
    print("\n".join(["Next, as root:", *(f"  {line}" for line in _next(options.name, files))]))
    return 0


def _inside(file: Path, root: Path) -> str:
    """Return the path of a file as seen when `root` is the root directory."""
    return f"/{file.relative_to(root)}" if file.is_relative_to(root) else str(file)


def _program() -> list[str]:
    """Return the words of a command line that start this program from any directory."""
    script = Path(sys.executable).with_name(DISTRIBUTION)
    return [str(script)] if script.exists() else [sys.executable, "-P", "-m", DISTRIBUTION]


def _next(name: str, files: dict[str, str]) -> list[str]:
    udev = ["udevadm control --reload && udevadm trigger"] if any("udev" in path for path in files) else []
    return [
        f"systemd-sysusers /etc/sysusers.d/{name}.conf",
        f"systemd-tmpfiles --create /etc/tmpfiles.d/{name}.conf",
        *udev,
        "systemctl daemon-reload",
        f"systemctl enable {name} && systemctl restart {name}",
        f"systemctl status {name}",
    ]
