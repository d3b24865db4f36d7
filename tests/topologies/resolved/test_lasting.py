"""The ends of all files of certificates that a gateway needs, whoever needs them, and of nobody else's."""

from datetime import UTC, datetime
from pathlib import Path

from appliance.certificates.making import authority
from topologies.loading.loader import loads
from topologies.resolved.resolve import resolve
from topologies.wiring.segments import wired

FILE = """
name: plant
gateways:
  gw-a:
    address: 10.0.0.1
    status: {{listen: "https://10.0.0.1:8443", open: true, tls: {{cert_file: {0}/page.pem}}}}
  gw-b: {{address: 10.0.0.2}}
brokers:
  main:
    on: gw-a
    listen: {{url: "tls+tcp://10.0.0.1:9943", tls: {{cert_file: {0}/broker.pem, ca_file: {0}/ca.pem}}}}
buses:
  hall: {{on: gw-a, listen: [{{url: "wss://10.0.0.1:9944", tls: {{cert_file: {0}/bus.pem}}}}]}}
  far:
    on: gw-b
    dial: {{url: "wss://10.0.0.9:9944", tls: {{ca_file: {0}/lost.pem, cert_file: {0}/dial.pem}}}}
"""


def test_each_gateway_has_those_that_it_needs(tmp_path: Path) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    for days, name in enumerate(("page", "broker", "ca", "bus", "dial"), 1):
        (tmp_path / f"{name}.pem").write_bytes(authority(name, now, days).pem())
    wiring = wired(loads(FILE.format(tmp_path), "plant.yaml", {}))
    found = {
        gateway: {
            Path(file).stem: (span.end_s - now.timestamp()) / 86400
            for file, span in resolve(wiring, gateway).lasting.items()
        }
        for gateway in ("gw-a", "gw-b")
    }
    assert found == {"gw-a": {"page": 1, "broker": 2, "ca": 3, "bus": 4}, "gw-b": {"dial": 5}}
