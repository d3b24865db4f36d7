"""Metrics: a real Prometheus scrapes a gateway, and its own tool checks format and rules."""

import asyncio
import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
import yaml

from appliance.web.assets import asset
from bus.reasons import DROPPED
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.appliance.web.web_support import gateway, get
from tests.helpers import ROOT
from tests.helpers.peers import Ear, until
from tests.helpers.ports import free_port

needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="prometheus is missing: apt-get install prometheus"
)
CONFIG = """\
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
rule_files: ["{rules}"]
scrape_configs: [{{job_name: buscoupler, static_configs: [{{targets: ["{target}"]}}]}}]
"""
RULES_TEST = """\
rule_files: ["{rules}"]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
{series}
    alert_rule_test:
      - {{eval_time: 2m, alertname: BuscouplerSeveralForward, exp_alerts: []}}
      - eval_time: 2m
        alertname: BuscouplerNobodyForwards
        exp_alerts:
          - exp_labels: {{severity: critical, topology: q, lease: motors}}
            exp_annotations: {{summary: "no gateway of q forwards for bridge or group motors"}}
"""
RECEIVED = 'buscoupler_messages_received_total{hub="plant",link="ear"}'


async def test_counters_never_fall_when_a_peer_goes_and_have_no_label_of_it() -> None:
    async with gateway() as running:
        hub = running.parts["bus plant"].hub
        near, far = Ear(hub), Ear(hub)
        near.say(*[pack(PUB, Pattern("alert"), b"1")] * 5)
        before = (await get(running.page.url, "/metrics")).body.decode()
        near.close()
        far.close()
        after = (await get(running.page.url, "/metrics")).body.decode()
        for line in before.splitlines():
            name, _, value = line.rpartition(" ")
            if name.partition("{")[0].endswith("_total") and "service" not in name:
                assert f"{name} {value}" in after.splitlines()
        assert " 5.0" in before


async def test_open_metrics_ends_with_its_mark_and_has_transit_times() -> None:
    async with gateway() as running:
        hub = running.parts["bus plant"].hub
        near, _ = Ear(hub), Ear(hub)
        near.link, _.link = "near", "far"

        async def scrape() -> str:
            near.say(pack(PUB, Pattern("alert"), b"1"))
            return (
                await get(running.page.url, "/metrics", "Accept: application/openmetrics-text")
            ).body.decode()

        found = await scrape()
        while 'buscoupler_transit_seconds_count{from="near",hub="plant",to="far"}' not in found:
            found = await scrape()
        assert found.endswith("# EOF\n")


@needs_prometheus
async def test_a_real_prometheus_scrapes_it_and_its_tool_finds_no_fault(tmp_path: Path) -> None:
    async with gateway() as running:
        Ear(running.parts["bus plant"].hub).say(pack(PUB, Pattern("alert"), b"1"))
        metrics = (await get(running.page.url, "/metrics", "Accept: text/plain")).body
        tool = ["promtool", "check", "metrics"]
        checked = await asyncio.to_thread(subprocess.run, tool, input=metrics, capture_output=True)
        assert (checked.returncode, checked.stderr) == (0, b"")
        config, port = tmp_path / "prometheus.yml", free_port()
        target, rules = running.page.url.rpartition("/")[2], ROOT / "appliance/web/alerts.yml"
        config.write_text(CONFIG.format(target=target, rules=rules))
        command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}"]
        process = await asyncio.create_subprocess_exec(
            *command, f"--web.listen-address=127.0.0.1:{port}", stderr=asyncio.subprocess.DEVNULL
        )
        try:
            await until(lambda: ask(port, 'buscoupler_info{job="buscoupler"}'), 30)
            rows = await asyncio.to_thread(ask, port, "buscoupler_messages_received_total")
            assert any(row["value"][1] == "1" for row in rows)
        finally:
            process.terminate()
            await process.wait()


def ask(port: int, query: str) -> list[dict[str, list[str]]]:
    """Return what Prometheus has for a query; nothing while it does not answer."""
    url = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            found: list[dict[str, list[str]]] = json.load(answer)["data"]["result"]
            return found
    except OSError:
        return []


def test_drops_alarm_for_all_reasons_that_are_trouble_and_for_no_other() -> None:
    rules = yaml.safe_load(asset("alerts.yml"))["groups"][0]["rules"]
    expr = next(rule["expr"] for rule in rules if rule["alert"] == "BuscouplerDrops")
    left_out = expr.partition('reason!~"')[2].partition('"')[0].split("|")
    assert left_out == [reason.word for reason in DROPPED if reason.kind != "trouble"]
    assert "no peer" in left_out
    assert "no device" not in left_out


@needs_prometheus
def test_the_rules_are_good() -> None:
    tool = ["promtool", "check", "rules", str(ROOT / "appliance/web/alerts.yml")]
    assert subprocess.run(tool, capture_output=True).returncode == 0


@needs_prometheus
def test_who_forwards_is_judged_by_lease_and_topology(tmp_path: Path) -> None:
    """Of a group, one bridge forwards, or all in parallel. Two topologies may have bridges of one name."""
    roles = (
        ("p", "a", "left", "active"), ("p", "b", "right", ""),
        ("q", "c", "right", ""), ("q", "d", "right", ""),
        ("r", "e", "right", "parallel"), ("r", "f", "right", "parallel"),
        ("s", "g", "right", "orphan"), ("s", "h", "right", ""),
    )  # fmt: skip
    series = [
        f'buscoupler_info{{job="buscoupler",instance="{instance}",topology="{topology}"}} 1 1 1'
        for topology, instance, _, _ in roles
    ] + [
        f'buscoupler_role{{job="buscoupler",instance="{instance}",bridge="{bridge}",lease="motors",'
        f'buscoupler_role="{word}"}}' + 3 * f" {word == role:d}"
        for _, instance, bridge, role in roles
        for word in dict.fromkeys(("active", "standby", role or "standby"))
    ]
    inputs = "\n".join(
        f"      - {{series: '{name}', values: '{values}'}}"
        for name, _, values in (line.partition("} ") for line in series)
        for name in (f"{name}}}",)
    )
    test = tmp_path / "test.yml"
    test.write_text(RULES_TEST.format(rules=ROOT / "appliance/web/alerts.yml", series=inputs))
    found = subprocess.run(["promtool", "test", "rules", str(test)], capture_output=True, text=True)
    assert (found.returncode, found.stdout + found.stderr) == (0, f"Unit Testing:  {test}\n  SUCCESS\n\n")


async def test_the_dashboard_and_the_rules_ask_for_metrics_that_exist() -> None:
    async with gateway() as running:
        found = (await get(running.page.url, "/metrics")).body.decode()
    known = {line.split()[2] for line in found.splitlines() if line.startswith("# TYPE")}
    import re

    for name in ("dashboard.json", "alerts.yml"):
        for word in set(re.findall(r"\bbuscoupler_\w+", asset(name))):
            family = re.sub("_(bucket|total|info)$", "", word)
            assert family in known or word == "buscoupler_role", word
