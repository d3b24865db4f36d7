"""Tests of late modules: what a gateway imports loads no OpenSSL, and TLS by asyncio finds it later."""

import asyncio
import json
import ssl
import subprocess
import sys

from bus.machine.late import Late, import_asyncio

PROGRAM = """
from bus.machine.late import import_asyncio
import_asyncio()
import asyncio, json, sys
from bus.kinds import load
import appliance.commands.run, appliance.compose
import bus.leases.candidacy, bus.leases.service, devices.dbp.beacon.link
from bridges.media import MEDIA
from bridges.protocols import PROTOCOLS
from devices import DEVICES

guilty = []
def look(what):
    if not guilty and ("_ssl" in sys.modules or "_hashlib" in sys.modules):
        guilty.append(what)

look("the command, brokers and candidates")
for key, medium in MEDIA.known():
    look(key) if key == "url" else look((key, load(medium.LINK)))
for key, _ in PROTOCOLS.known():
    look(key)
for key, device in DEVICES.known():
    if key != "proxy":  # it has no connection without TLS
        look((key, device.part == "service" and load(device.SERVICE)))
plain = asyncio.base_events.ssl.SSLContext
asyncio.sslproto.SSLProtocol, asyncio.selector_events.sslproto.SSLProtocol
import ssl
print(json.dumps([str(guilty), plain is ssl.SSLContext, sys.modules["ssl"] is ssl]))
"""


def test_nothing_of_a_gateway_loads_openssl_before_it_is_used_and_asyncio_finds_it_then() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["[]", True, True]


def test_a_late_module_has_what_the_module_has() -> None:
    late = Late("json")
    assert late.dumps is json.dumps
    assert not hasattr(late, "nothing of this name")


def test_asyncio_stays_as_it_is_if_it_was_imported_before() -> None:
    import_asyncio()
    assert sys.modules["asyncio"] is asyncio
    assert sys.modules["ssl"] is ssl
