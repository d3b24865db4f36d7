"""Tests of late modules: a gateway loads what its topology needs, and TLS by asyncio finds OpenSSL later."""

import asyncio
import json
import os
import ssl
import subprocess
import sys
from functools import partial
from inspect import iscoroutinefunction
from pathlib import Path

from bus.machine.late import Late, import_asyncio, is_coroutine_function
from tests.helpers.ports import free_port

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

MEDIA = """
name: plain
gateways: {gw: {address: 127.0.0.1, node: 1, status: {serve: false}}}
buses: {shop: {on: gw, listen: 'ipc://DIR/bus'}}
bridges:
  machines:
    on: gw
    join:
      - bus: shop
      - uart: DIR/line
      - can: {channel: 239.74.163.9, interface: udp_multicast, options: {port: PORT, hop_limit: 0}}
"""
RUN = """
import sys
from buscoupler.__main__ import main
main(["run", sys.argv[1], "--run-directory", sys.argv[2], "--test", "--seconds", "0.2"])
print("loaded:", *sorted(set(sys.argv[3:]) & set(sys.modules)))
"""
NEVER = (
    "can wrapt typing_extensions sqlite3 _ssl _hashlib pynng websockets http.client html pyarrow numpy lark "
    "importlib.metadata email zipfile csv difflib xml devices.tap devices.cache bridges.simulate "
    "topologies.picture.drawing appliance.telemetry bus.leases.service bridges.durable.house "
    "shutil tempfile bz2 lzma inspect ast dis locale gettext "
    "unicodedata yaml.cyaml yaml._yaml decimal bridges.front.hub"
)
"""What no gateway of two media loads at its start."""


def test_a_gateway_of_two_media_loads_nothing_of_what_it_does_not_use(tmp_path: Path) -> None:
    file = tmp_path / "plain.yaml"
    file.write_text(MEDIA.replace("DIR", str(tmp_path)).replace("PORT", str(free_port())))
    words = [sys.executable, "-c", RUN, str(file), str(tmp_path / "run"), *NEVER.split()]
    here = os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(words, capture_output=True, text=True, env=here)
    assert "can:udp_multicast" in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded:"


def test_nothing_of_a_gateway_loads_openssl_before_it_is_used_and_asyncio_finds_it_then() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["[]", True, True]


PARTS = """
import sys
from bus.machine.late import import_argparse, import_asyncio
import_asyncio()
import_argparse()
import argparse, asyncio, dataclasses, subprocess
before = sys.modules.keys() & {"gettext", "inspect", "locale"}
asyncio.iscoroutinefunction(len), subprocess.check_output(["true"], text=True)
dataclasses.dataclass(type("Undocumented", (), {}))
import inspect, locale
print(before, locale.LC_ALL, inspect.getmodule(inspect).__name__)
argparse.ArgumentParser(prog="it").parse_args(["--nothing"])
"""


def test_parts_of_the_library_come_when_something_of_theirs_is_used() -> None:
    done = subprocess.run([sys.executable, "-c", PARTS], capture_output=True, text=True)
    assert done.stdout == "set() 6 inspect\n", done.stderr
    assert done.stderr == "usage: it [-h]\nit: error: unrecognized arguments: --nothing\n"


class Handlers:
    """Functions of each kind that a loop may be given."""

    async def later(self) -> None: ...
    def now(self) -> None: ...


def test_a_coroutine_function_is_known_without_inspect() -> None:
    of = Handlers()
    functions = (of.later, of.now, Handlers.later, partial(of.later), partial(of.now), len, Handlers)
    assert [is_coroutine_function(one) for one in functions] == [
        iscoroutinefunction(one) for one in functions
    ]
    assert is_coroutine_function(of.later)
    assert not is_coroutine_function(of.now)


def test_the_binding_of_libyaml_comes_when_it_is_asked_for() -> None:
    code = """
import sys
import topologies.loading, yaml
assert yaml.safe_load(yaml.safe_dump({"a": [1, 2.5]})) == {"a": [1, 2.5]}
assert not hasattr(yaml, "nothing of this name")
assert "yaml._yaml" not in sys.modules
from yaml import CSafeLoader
assert yaml.load("a: 1", CSafeLoader) == {"a": 1}
assert not hasattr(yaml, "Chicken")
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    without = "import sys, topologies.loading, yaml; sys.modules['yaml._yaml'] = None; "
    without += "assert not hasattr(yaml, 'CLoader')"
    subprocess.run([sys.executable, "-c", without], check=True)


def test_a_module_that_is_used_while_it_keeps_a_place_is_imported() -> None:
    code = """
import sys
from bus.machine.late import Late
sys.modules["colorsys"] = Late("colorsys")
from colorsys import hsv_to_rgb
import colorsys
assert not isinstance(colorsys, Late) and colorsys.hsv_to_rgb is hsv_to_rgb
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_late_module_has_what_the_module_has() -> None:
    late = Late("json")
    assert late.dumps is json.dumps
    assert not hasattr(late, "nothing of this name")


def test_asyncio_stays_as_it_is_if_it_was_imported_before() -> None:
    import_asyncio()
    assert sys.modules["asyncio"] is asyncio
    assert sys.modules["ssl"] is ssl
