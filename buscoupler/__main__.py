"""The command: `buscoupler`, or `python -m buscoupler`."""

import sys

from buscoupler.packages import check_packages


def main(arguments: list[str] | None = None) -> int:
    """Run one command by `appliance.commandline.cli`.

    Return its exit status, or 1 if a foreign module hides a package of ours.
    """
    try:
        check_packages()
    except ImportError as error:
        print(f"buscoupler: {error}", file=sys.stderr)
        return 1
    try:
        from appliance.commandline.cli import main as command
    except KeyboardInterrupt:
        return 130
    return command(arguments)


if __name__ == "__main__":
    sys.exit(main())
