"""The serial ports, CAN interfaces and I2C buses of this machine, found without opening a device."""

import re
from collections.abc import Iterator
from pathlib import Path

_CAN = "280"  # ARPHRD_CAN
_CAN_FD_BYTES = 72  # MTU of an interface that takes CAN FD
_I2C = re.compile(r"i2c-(\d{1,3})")


def found(root: Path = Path("/")) -> Iterator[str]:
    """Yield the serial ports and CAN interfaces of this machine as endpoints of the command line."""
    yield from (f"uart:{path}" for path in _serial(root))
    yield from _can(root / "sys/class/net")


def i2c_buses(root: Path = Path("/")) -> list[int]:
    """Return the numbers of the I2C buses. Targets are not probed: that could disturb them."""
    names = [_I2C.fullmatch(path.name) for path in (root / "dev").glob("i2c-*")]
    return sorted(int(name[1]) for name in names if name and int(name[1]) < 256)


def _serial(root: Path) -> list[str]:
    """Return the paths of serial ports that stay the same when an adapter is plugged in again."""
    return sorted(f"/dev/serial/by-id/{path.name}" for path in (root / "dev/serial/by-id").glob("*"))


def _can(directory: Path) -> Iterator[str]:
    for interface in sorted(directory.glob("*")):
        if _read(interface / "type") == _CAN:
            fd = _read(interface / "mtu") == str(_CAN_FD_BYTES)
            yield f"can:{interface.name}?node=1{'&fd=true' if fd else ''}"


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
