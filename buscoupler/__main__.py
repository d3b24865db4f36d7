"""The command: `buscoupler`, or `python -m buscoupler`."""

import signal
import sys


def main(arguments: list[str] | None = None) -> int:
    """Run one command by `appliance.commandline.cli`.

    Return its exit status, or 1 if a foreign module hides a package of ours. As the program itself, without
    `arguments`, it ends by SIGINT without a word before the command has begun, and after it has ended.
    """
    if arguments is None and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from buscoupler.packages import check_packages

    try:
        check_packages()
    except ImportError as error:
        print(f"buscoupler: {error}", file=sys.stderr)
        return 1
    from bus.machine.late import import_argparse, import_asyncio

    import_asyncio()
    import_argparse()
    from appliance.commandline.cli import main as command

    return command(arguments)


if __name__ == "__main__":
    sys.exit(main())
