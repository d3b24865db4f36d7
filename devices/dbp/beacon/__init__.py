"""The beacon: catalogs, buses and brokers say once a second on the LAN where they are (docs/dbp.md).

`wire` is what a beacon says, without I/O. `interfaces` reads the addresses of this machine. `sending`
announces, `finding` listens. `link` dials a bus that is named by its beacon.
"""
