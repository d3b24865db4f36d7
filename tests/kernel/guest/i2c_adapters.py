"""The I2C adapters of the virtual machine: i2c-stub with blocks, and i2c-i801 with bytes."""

from pathlib import Path

import pytest

ADAPTERS = Path("/sys/class/i2c-adapter")
STUB, PCI = "SMBus stub driver", "SMBus I801 adapter"
TARGET = {STUB: 0x42, PCI: 0x57}
NOBODY = 0x33
EACH = pytest.mark.parametrize("name", [STUB, PCI], ids=["stub", "i801"])


def number(name: str) -> int:
    """Return N of /dev/i2c-N for the adapter that its driver names so."""
    for adapter in ADAPTERS.iterdir():
        if (adapter / "name").read_text().startswith(name):
            return int(adapter.name.removeprefix("i2c-"))
    pytest.fail(f"there is no I2C adapter named {name!r}")


def is_pci(bus: int) -> bool:
    return (ADAPTERS / f"i2c-{bus}").exists() and number(PCI) == bus
