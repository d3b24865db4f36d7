"""The beacon: catalogs, buses and brokers announce their addresses on the LAN each second (docs/dbp.md).

`wire` has the datagrams, without I/O. `interfaces` reads the addresses of this machine. `sending` announces,
`finding` listens. `link` dials a bus by the name in its beacon.
"""
