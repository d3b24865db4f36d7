"""Jobs that decode data read a topology by the command: what its protocols know of values."""

import argparse

import pytest

from appliance.commandline.parsing import Parser
from appliance.commands import pipeline
from tests.helpers import ROOT


def parsed(job: str, *words: str) -> argparse.Namespace:
    parser = Parser(prog="buscoupler pipeline")
    pipeline.arguments(parser)
    return parser.parse_args([job, "capture", *words])


@pytest.mark.parametrize("job", ["signals", "report", "sql"])
def test_the_values_of_a_topology_are_known(job: str) -> None:
    found = parsed(job, "--topology", str(ROOT / "topologies/meter.yaml")).topology
    assert {one.unit for one in found} > {""}


def test_a_file_that_is_no_topology_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("signals", "--topology", str(ROOT / "README.md"))
    error = capsys.readouterr().err
    assert "README.md" in error.splitlines()[-1]
