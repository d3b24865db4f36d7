"""`buscoupler key new FILE`: make a key that the gateways of a system share."""

import argparse

from bus import keys


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    new = actions.add_parser("new", help="write a new key to a new file that only its owner can read")
    new.add_argument("file", metavar="FILE", help="the file to write, which must not be there yet")
    name = actions.add_parser("name", help="print the name of a key: the same on all gateways that have it")
    name.add_argument("file", metavar="FILE", help="the file of a key")


def run(options: argparse.Namespace) -> int:
    """Make a key file, or print the name of a key. Return 0."""
    made = options.action == "new"
    name = keys.new_key(options.file) if made else keys.name_of(keys.read_key(options.file))
    print(
        f"{options.file}: key {name}; copy the file to the other gateways, for example with scp -p"
        if made
        else name
    )
    return 0
