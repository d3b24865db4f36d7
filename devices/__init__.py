"""Devices sit on a bus and serve it: a folder for each kind, and a table that finds its record by its key.

The rest of the program reads only the record (`device.py` in the kind's folder; `device` is the base of all
records). Another distribution can add a kind with an entry point of the group `buscoupler.devices`. `service`
is the base of devices that take part in a bus. `tap` records a bus, and `log` what gateways log there.
`syndication` is a broker whose clients subscribe by queries. `raw` is the raw device, a process of its own
and in no topology. `places` says where devices keep files, `disk` has the thread that writes them, `child` a
process that works for a device, `ports` says which ports they take. `times` writes the time, `zeromq` has
sockets of ZeroMQ. `catalog` lists services, which find each other by it. `beacon` says on the LAN where
catalogs, buses and brokers are. `nodes` has services and clients for programs. `monitor` looks into what
nodes say. `cache` keeps last values. `proxy` joins two catalogs. `upload` stores captures elsewhere.
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
        "catalog": "devices.catalog.device:CatalogSpec",
        "cache": "devices.cache.device:CacheSpec",
        "proxy": "devices.proxy.device:ProxySpec",
        "syndication": "devices.syndication.device:SyndicationSpec",
        "upload": "devices.upload.device:UploadSpec",
    },
)
