"""Rules for Prometheus are YAML with an alert for each alarm, once for all gateways."""

import shutil
import subprocess
from pathlib import Path

import yaml

from appliance.alarms.rules import rules
from tests.appliance.alarms.alarms_support import spec


def test_each_alarm_has_one_alert() -> None:
    alarms = {"warm": spec(above=8, severity="critical", text='too "warm": {{ $x }}'), "cold": spec(below=1)}
    (group,) = yaml.safe_load(rules("plant", alarms))["groups"]
    warm, cold = group["rules"]
    assert (warm["alert"], warm["labels"]) == ("warm", {"severity": "critical"})
    assert warm["expr"].startswith('max by (topology, alarm, of) (buscoupler_alarm{alarm="warm"}')
    assert warm["annotations"]["summary"] == '{{ $labels.of }}: too "warm": {{ "{{" }} $x }}'
    assert cold["annotations"]["summary"] == "{{ $labels.of }}: alarm {{ $labels.alarm }}"


def test_any_text_is_the_text_of_its_alert(tmp_path: Path) -> None:
    texts = ["\U0001f525 fire", "{{ boom", "a }} b {{ c }}", "ü: 'x'", '\\ "q" %']
    made = rules("plant", {f"a{n}": spec(above=8, text=text) for n, text in enumerate(texts)})
    (group,) = yaml.safe_load(made)["groups"]
    found = [rule["annotations"]["summary"].removeprefix("{{ $labels.of }}: ") for rule in group["rules"]]
    assert [one.replace('{{ "{{" }}', "{{") for one in found] == texts
    file = tmp_path / "rules.yml"
    file.write_text(made)
    if shutil.which("promtool"):
        told = subprocess.run(["promtool", "check", "rules", str(file)], capture_output=True, text=True)
        assert told.returncode == 0, told.stderr
