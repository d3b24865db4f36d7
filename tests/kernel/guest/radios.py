"""Three simulated radios of the kernel (mac802154_hwsim) for tests, all of which hear each other."""

import ctypes
import os
import subprocess
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from threading import Thread
from typing import TypeVar

from bridges.media.ieee802154.link import RadioLink
from bridges.media.ieee802154.medium import Ieee802154
from tests.kernel.guest.support import PATIENCE_S, ips

T = TypeVar("T")
PAN = 0xBEEF
NAMES = ("wpan0", "wpan1", "wpan2")
_NEW_NET = 0x40000000  # CLONE_NEWNET


def run(*words: str) -> None:
    """Run a program. Fail the test if it fails."""
    subprocess.run(words, check=True, timeout=PATIENCE_S)


@cache
def make() -> None:
    """Load the drivers, and add a third radio to the two that they make."""
    run("modprobe", "-a", "mac802154_hwsim", "ieee802154_socket")
    run("wpan-hwsim", "add")
    for other in ("0", "1"):
        subprocess.run(["wpan-hwsim", "edge", "add", "2", other], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["wpan-hwsim", "edge", "add", other, "2"], check=False, stderr=subprocess.DEVNULL)


def join(*names: str, pan: int = PAN) -> None:
    """Put radios into a PAN, and switch them on."""
    ips(*(f"link set {name} down" for name in names))
    for name in names:
        run("iwpan", "dev", name, "set", "pan_id", hex(pan))
        run("iwpan", "dev", name, "set", "short_addr", hex(1 + NAMES.index(name)))
    ips(*(f"link set {name} up" for name in names))


def radio_link(name: str) -> RadioLink:
    """Return a link on a radio, not yet open."""
    return RadioLink(Ieee802154(interface=name, pan=PAN), retry_min_s=0.05, retry_max_s=0.2)


def in_namespace(name: str, call: Callable[[], T]) -> T:
    """Call in a network namespace: sockets that are made there stay in it."""
    done = Future[T]()

    def inside() -> None:
        descriptor = os.open(Path("/run/netns") / name, os.O_RDONLY)
        assert ctypes.CDLL(None).setns(descriptor, _NEW_NET) == 0
        os.close(descriptor)
        try:
            done.set_result(call())
        except OSError as error:
            done.set_exception(error)

    Thread(target=inside).start()
    return done.result(PATIENCE_S)
