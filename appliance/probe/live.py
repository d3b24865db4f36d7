"""Whether an endpoint is real: what is sent on a wire of devices moves things, so that it needs a word."""

import argparse
import asyncio
import ipaddress
import os
import stat
import sys
from typing import Final

from appliance.probe.endpoint import RETRY_MAX_S, Endpoint
from appliance.probe.station import Station
from bridges.media.can.listening import VIRTUAL, controller_of
from bridges.media.can.medium import Can
from bridges.media.i2c.medium import I2c
from bridges.media.tcp.medium import Tcp
from bridges.media.uart.medium import Uart
from bridges.media.udp.medium import Udp
from bridges.protocols.protocol import Protocol
from bridges.protocols.raw.protocol import Raw
from bus.errors import LinkError
from bus.text import amount, plain
from bus.wire.frame import unpack
from bus.wire.identifier import identifier_word

LISTEN_S: Final = 1.0
_SHOWN: Final = 8
_PTY_MAJORS: Final = range(136, 144)  # UNIX98_PTY_SLAVE_MAJOR, of linux/major.h
_SILENT: Final = ("virtual", "udp_multicast")  # interfaces of python-can that have no controller


def reality(endpoint: Endpoint) -> str:
    """Return what an endpoint is, if what is sent there may reach devices by a wire of theirs; else "".

    Buses, vcan, pseudo-terminals, multicast and this machine's own addresses are none.
    """
    medium = endpoint.medium
    if isinstance(medium, Can):
        return _of_can(medium)
    if isinstance(medium, Uart):
        return "" if _is_pty(medium.port) else "a serial port"
    if isinstance(medium, Tcp | Udp):
        return "" if _is_here(medium.host) else "an address of another machine"
    return "an I2C bus" if isinstance(medium, I2c) else ""


def _of_can(medium: Can) -> str:
    channel = str(medium.channel)
    if medium.interface in _SILENT or _is_pty(channel):
        return ""
    if medium.interface != "socketcan":
        return f"an adapter of CAN ({medium.interface})"
    kind = controller_of(channel).kind
    return "" if kind in VIRTUAL else f"an interface of kind {kind}" if kind else "no interface that is known"


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _is_pty(path: str) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return False
    return stat.S_ISCHR(found.st_mode) and os.major(found.st_rdev) in _PTY_MAJORS


def add_live(parser: argparse.ArgumentParser) -> None:
    """Add `--live`, for a command that sends CAN frames."""
    parser.add_argument("--live", action="store_true", help="send CAN frames onto a real wire, too")


async def cleared(
    options: argparse.Namespace, endpoint: Endpoint, sent: frozenset[int] | None = None
) -> None:
    """Ask for `--live` before frames go to a real wire, and say what that is. Wrong use ends the program with
    status 2. `sent` are the identifiers, None if they are not known."""
    if is_raw(endpoint.protocol):
        try:
            refuse_unless_live(endpoint, options.live)
        except LinkError as error:
            options.fail(str(error))
        await announce(endpoint, sent)


def is_raw(protocol: Protocol | None) -> bool:
    """Return whether a protocol sends the frames of devices as they are on CAN."""
    return protocol is not None and ("frames" in protocol.items or isinstance(protocol, Raw))


def refuse_unless_live(endpoint: Endpoint, live: bool) -> None:
    """Raise `LinkError` if frames would go to a real wire, and nobody said that they may."""
    if not live and (real := reality(endpoint)):
        raise LinkError(
            f"{endpoint.word}: {real}: what is sent there may move things; --live says that it may"
        )


async def announce(endpoint: Endpoint, sent: frozenset[int] | None) -> None:
    """Say what a real wire is, what is heard there in a second, and which identifiers of `sent` (None: not
    known) come from somebody else, too."""
    real = reality(endpoint)
    if not real or endpoint.medium is None:
        return
    heard = await _heard(endpoint) if "frames" in endpoint.medium.items else []
    both = sorted(set(heard) & (sent or frozenset()))
    words = ", ".join(map(identifier_word, both[:_SHOWN])) + (" ..." if len(both) > _SHOWN else "")
    shared = f"; {len(both)} are sent by both: {words}" if both else ""
    frames, identifiers = amount(len(heard), "frame"), amount(len(set(heard)), "identifier")
    text = f"{frames} of {identifiers} heard in {LISTEN_S:g} s{shared}"
    print(plain(f"buscoupler: {endpoint.word}: {real}: {text}"), file=sys.stderr, flush=True)


async def _heard(endpoint: Endpoint) -> list[int]:
    """Listen to all frames of a bus for a second, and return their identifiers."""
    assert endpoint.medium is not None
    link = endpoint.medium.speaking(Raw(root=("can",)), retry_max_s=RETRY_MAX_S)
    async with Station(link) as station:
        if not await station.peer(LISTEN_S):
            return []
        await station.until(lambda: False, LISTEN_S)
        await asyncio.sleep(0)
        return [unpack(message).tokens[1] for message in station.leaf.heard]
