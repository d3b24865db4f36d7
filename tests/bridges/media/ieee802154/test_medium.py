"""The settings of 802.15.4 radios: what is refused."""

import pytest

from bridges.media.ieee802154.medium import Ieee802154


@pytest.mark.parametrize("interface", ["", "w" * 16, "a/b"])
def test_what_linux_takes_for_no_interface_is_refused(interface: str) -> None:
    assert Ieee802154(interface="w" * 15, pan=1).device == "w" * 15
    with pytest.raises(ValueError, match="interface"):
        Ieee802154(interface=interface, pan=1)
