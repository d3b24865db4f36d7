"""`buscoupler uninstall`: remove the files of `install`. Topologies, captures and the user stay."""

import argparse

from appliance.commands.install import service_arguments
from appliance.service.files import take_back
from bus.errors import TopologyError


def arguments(parser: argparse.ArgumentParser) -> None:
    service_arguments(parser)


def run(options: argparse.Namespace) -> int:
    name = options.name
    lines = take_back(name, options.root)
    if not lines:
        raise TopologyError(
            f"no service {name} was installed below {options.root}: use the --name and --root of the install"
        )
    print("\n".join(lines))
    print(
        f"Next, as root:\n  systemctl stop {name}\n  systemctl daemon-reload\n"
        f"/etc/{name}, /var/lib/{name} and the user {name} stay."
    )
    return 0
