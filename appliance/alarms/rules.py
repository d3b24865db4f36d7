"""The alert rules of Prometheus for the alarms of a topology. Pure."""

import json
from collections.abc import Iterator, Mapping

from topologies.model.alarms import AlarmSpec


def rules(system: str, alarms: Mapping[str, AlarmSpec]) -> str:
    """Return a file of rules, in YAML: one alert for each alarm, once for all gateways that know of it."""
    head = ["groups:", f"  - name: {json.dumps(f'alarms of {system}', ensure_ascii=False)}", "    rules:"]
    return "\n".join([*head, *_all(system, alarms)])


def _all(system: str, alarms: Mapping[str, AlarmSpec]) -> Iterator[str]:
    for name, spec in alarms.items():
        about = "on (job, instance) group_left (topology) buscoupler_info"
        raised = f'buscoupler_alarm{{alarm="{name}"}} * {about}{{topology="{system}"}}'
        yield f"      - alert: {json.dumps(name)}"
        yield f"        expr: {json.dumps(f'max by (topology, alarm, of) ({raised}) > 0')}"
        yield f"        labels: {{severity: {spec.severity}}}"
        yield "        annotations:"
        words = "{{ $labels.of }}: " + (_literal(spec.text) if spec.text else "alarm {{ $labels.alarm }}")
        yield f"          summary: {json.dumps(words, ensure_ascii=False)}"


def _literal(text: str) -> str:
    """Return the template of Prometheus that gives a text as it is."""
    return text.replace("{{", '{{ "{{" }}')
