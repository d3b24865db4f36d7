"""Rules for Prometheus are YAML with an alert for each alarm, once for all gateways."""

import yaml

from appliance.alarms.rules import rules
from tests.appliance.alarms.alarms_support import spec


def test_each_alarm_has_one_alert() -> None:
    alarms = {"warm": spec(above=8, severity="critical", text='too "warm": {{ $x }}'), "cold": spec(below=1)}
    (group,) = yaml.safe_load(rules("plant", alarms))["groups"]
    warm, cold = group["rules"]
    assert (warm["alert"], warm["labels"]) == ("warm", {"severity": "critical"})
    assert warm["expr"].startswith('max by (topology, alarm, of) (buscoupler_alarm{alarm="warm"}')
    assert "too" in warm["annotations"]["summary"]
    assert cold["annotations"]["summary"] == "{{ $labels.of }}: alarm {{ $labels.alarm }}"
