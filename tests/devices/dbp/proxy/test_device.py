"""A proxy in a topology: what is wrong with its settings is said, and two gateways are joined by one."""

import asyncio
from pathlib import Path

import pytest
import trustme

from appliance.status.snapshot import snapshot
from devices.dbp.nodes.client import Client
from devices.dbp.nodes.service import Service
from tests.helpers.appliances import appliance_of, reloaded
from tests.helpers.ports import free_port
from tests.topologies.support import said
from topologies.checks.checker import check
from topologies.loading.loader import loads
from topologies.picture.show import show

HEAD = "name: t\ngateways: {gw: }\ndevices:\n  p: {on: gw, proxy: 'tcp://127.0.0.1:5', %s}\n"
TLS = "tls: {ca_file: ca.pem, cert_file: own.pem}"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (TLS, "one of dial and listen is needed"),
        (f"dial: 'tls+tcp://h:1', listen: 'tls+tcp://h:1', {TLS}", "one of dial and listen is needed"),
        (f"dial: 'tcp://127.0.0.1:6', {TLS}", "a proxy connects over tls+tcp://HOST:PORT only"),
        ("dial: 'tls+tcp://h:1'", "tls needs ca_file and cert_file"),
        ("dial: 'tls+tcp://h:1', tls: {cert_file: own.pem}", "tls needs ca_file and cert_file"),
    ],
)
def test_wrong_settings(words: str, text: str) -> None:
    assert text in said(HEAD % words)


TEXT = """\
name: two
gateways: {{office: , hall: }}
devices:
  directory: {{on: office, catalog: "tcp://127.0.0.1:{0}", records: none, beacon: false}}
  down:
    {{on: office, proxy: "tcp://127.0.0.1:{0}", listen: "tls+tcp://127.0.0.1:{2}", {tls}, accepts: "{name}"}}
  list: {{on: hall, catalog: "tcp://127.0.0.1:{1}", records: none, beacon: false}}
  up: {{on: hall, proxy: "tcp://127.0.0.1:{1}", dial: "tls+tcp://127.0.0.1:{2}", {tls}, offers: ["*"]}}
"""


async def listed(client: Client, *names: str) -> None:
    while sorted(await client.services()) != sorted(names):
        await asyncio.sleep(0.02)


async def test_two_gateways_are_joined_and_a_reload_changes_what_crosses(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "own.pem"))
    tls = f"tls: {{ca_file: {tmp_path}/ca.pem, cert_file: {tmp_path}/own.pem}}"
    ports = [free_port() for _ in range(3)]
    topology = loads(TEXT.format(*ports, tls=tls, name="oven"), "t.yaml")
    assert check(topology) == []
    assert f"proxy of tcp://127.0.0.1:{ports[0]}, listens on tls+tcp://127.0.0.1:{ports[2]}" in show(topology)
    loop = asyncio.get_running_loop()
    office, hall = appliance_of(topology, "office"), appliance_of(topology, "hall")
    office.open(loop)
    hall.open(loop)
    try:
        urls = [f"tcp://127.0.0.1:{port}" for port in ports]
        async with (
            Service("oven", {"heat": lambda request: b"180"}, catalog=urls[1], port=0) as oven,
            Service("drill", catalog=urls[1], port=0) as drill,
            Client(urls[0]) as client,
        ):
            await oven.listed()
            await drill.listed()
            await listed(client, "oven")
            assert await client.ask("oven", "heat") == (b"180",)
            (broker,) = [one for one in snapshot(office.view())["brokers"] if one["name"] == "down"]
            assert broker["counts"]["taken"] == 1
            changed = reloaded(office, loads(TEXT.format(*ports, tls=tls, name="drill"), "t.yaml"))
            assert [change.line() for change in changed] == ["changed device down: accepts"]
            await listed(client, "drill")
    finally:
        hall.close()
        office.close()
