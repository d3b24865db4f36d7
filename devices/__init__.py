"""Devices sit on a bus and serve it: a folder for each kind, and a table that finds its record by its key.

`device` is the base of the records (`device.py` in a kind's folder), and all that topologies and the loader
read of a kind. Another distribution adds a kind by an entry point of the group `buscoupler.devices`.
`service` is the base of devices that take part in a bus, `child` runs a process for a device, `disk` has a
thread for files. `dbp` is a folder of several kinds: services that find each other by a catalog. `raw` is
the raw device, a process that no topology names. What runs `telemetry` is in `appliance.telemetry`.
"""

from typing import TYPE_CHECKING

from bus.kinds import Kinds

if TYPE_CHECKING:
    from devices.device import DeviceSpec

DEVICES: "Kinds[DeviceSpec]" = Kinds(
    "buscoupler.devices",
    {
        "tap": "devices.tap.device:TapSpec",
        "log": "devices.log.device:LogSpec",
        "catalog": "devices.dbp.catalog.device:CatalogSpec",
        "cache": "devices.cache.device:CacheSpec",
        "proxy": "devices.dbp.proxy.device:ProxySpec",
        "syndication": "devices.syndication.device:SyndicationSpec",
        "upload": "devices.upload.device:UploadSpec",
        "telemetry": "devices.telemetry.device:TelemetrySpec",
    },
)
