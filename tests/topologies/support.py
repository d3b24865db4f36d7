"""Helpers for short topologies in tests."""

from topologies.checks.checker import check
from topologies.findings import Finding, InvalidTopology
from topologies.loading.loader import loads

GATEWAY = "name: t\ngateways: {gw: {node: 1}}\n"
PAIR = "name: t\ngateways: {a: {address: 10.0.0.1, node: 1}, b: {address: 10.0.0.2, node: 2}}\n"


def findings(text: str) -> list[Finding]:
    """Return the loader's findings about a text; empty if it accepts the text."""
    try:
        loads(text, "t.yaml")
    except InvalidTopology as error:
        return error.findings
    return []


def said(text: str) -> str:
    """Return the text of the error that is raised; empty if none is."""
    try:
        loads(text, "t.yaml")
    except InvalidTopology as error:
        return str(error)
    return ""


def errors(text: str) -> list[str]:
    return [finding.text for finding in check(loads(text)) if finding.level == "error"]


def warnings(text: str) -> list[str]:
    return [finding.text for finding in check(loads(text)) if finding.level == "warning"]
