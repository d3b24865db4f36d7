"""The notebook of five questions: its cells run from the first to the last on a capture."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.engine.choice import SAIL, VARIABLE
from tests.helpers import ROOT

pytest.importorskip("pyarrow")

from tests.rigs import planted

NOTEBOOK = json.loads((ROOT / "examples" / "questions.ipynb").read_text())


@pytest.mark.timeout(300)
def test_the_notebook_answers_on_a_capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pysail")
    planted.generate(tmp_path, planted.Plan(rows=9_000))
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):  # of the Spark that runs for other tests
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(VARIABLE, SAIL)
    monkeypatch.setenv("CAPTURE", str(tmp_path))
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    said = []
    for cell in NOTEBOOK["cells"]:
        if cell["cell_type"] == "code":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec("".join(cell["source"]), names)
            said.append(out.getvalue())
    _, verdict, faults, hops, talkers, gaps = said
    assert verdict.startswith("red - ")
    assert "lost  in bridge" in faults
    assert "bridge  seg-0  trunk" in hops
    assert "trunk" in talkers
    assert " ms, from gw-" in gaps


def test_the_notebook_is_kept_without_what_it_printed() -> None:
    assert not any(cell.get("outputs") for cell in NOTEBOOK["cells"])
