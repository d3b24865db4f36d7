"""The log of gateways: a recorder of one pattern. `device` is its record; `devices.tap` does the work."""
