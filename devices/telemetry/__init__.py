"""Telemetry: traces and log lines of a gateway for a collector of OpenTelemetry (docs/log.md).

`device` is the record. `appliance/telemetry` does the work.
"""
