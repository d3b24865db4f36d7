"""python-can without its log files: what a gateway loads, and what other programs still get."""

import subprocess
import sys

from tests.helpers import ROOT

CODE = """
import sys
from bridges.media.can.library import python_can
can = python_can()
print("sqlite3" in sys.modules, "can.io" in sys.modules, can.Bus.__name__, python_can() is can)
from can.io import ASCReader
print("sqlite3" in sys.modules, ASCReader.__name__)
"""


def test_a_gateway_does_not_load_sqlite_and_a_program_can_still_read_logs() -> None:
    lines = subprocess.check_output([sys.executable, "-c", CODE], cwd=ROOT, text=True).splitlines()
    assert lines == ["False False Bus True", "True ASCReader"]
