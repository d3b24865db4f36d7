"""What the page of the syndication broker says of buses is what the code does."""

import re
from typing import get_args
from uuid import uuid5

import pytest

pytest.importorskip("msgpack", reason="the extra syndication is not installed")

from bus.schema import settings, unwrap
from bus.wire.pattern import Pattern
from devices.syndication.buses.intake import NAMESPACE, producer_id
from devices.syndication.buses.rules import METADATA_BYTES_MAX, ProducerRule
from tests.helpers import ROOT
from topologies.checks.checker import check
from topologies.loading.loader import loads

PAGE = (ROOT / "docs/syndication.md").read_text()
SECTION = PAGE.partition("## On a bus\n")[2].partition("\n## ")[0]
HEAD = "name: t\ngateways: {gw: }\nbuses: {hall: {on: gw, listen: 'tcp://127.0.0.1:5'}}\n"
BLOCK = re.compile(r"^```yaml\n(devices:.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("devices", BLOCK.findall(PAGE))
def test_its_topologies_can_run(devices: str) -> None:
    assert check(loads(HEAD + devices)) == []


def test_its_id_is_that_of_the_pattern() -> None:
    assert f"`{NAMESPACE}`" in SECTION
    (name,) = re.findall(r"`(hall/0x\w+/0x\w+)` for `fridge/temp`", SECTION)
    assert str(uuid5(NAMESPACE, name)) == producer_id("hall", Pattern("fridge", "temp"))


def test_its_codecs_and_bounds_are_those_of_the_records() -> None:
    words = get_args(unwrap(settings(ProducerRule)["codec"].annotation)[0])
    assert tuple(re.findall(r"^\| `([\w-]+)`", SECTION, re.MULTILINE)) == words
    assert [f"{word}`" in SECTION for word in ("no utf-8", "no json", "no msgpack", "no struct")] == [
        True
    ] * 4
    rule = ProducerRule(bus="hall", pattern=())
    assert f"({rule.producers} by default" in SECTION
    assert (rule.idle_s, f"up to {METADATA_BYTES_MAX} bytes" in SECTION) == (3600, True)
