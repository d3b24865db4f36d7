"""Places to write, looked at before an engine starts."""

from pathlib import Path

import pytest

from appliance.commandline.cli import main
from pipeline.errors import PipelineError
from pipeline.output.place import check


@pytest.mark.parametrize("name", ["new", "new/in/new", "file"])
def test_what_can_be_made_or_written_is_right(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    check(str(tmp_path / name))
    check("hdfs://cluster/anywhere")


def test_below_a_file_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PipelineError, match="file/new: cannot be written: Not a directory"):
        check(str(tmp_path / "file" / "new"))


@pytest.mark.parametrize(
    "words",
    [["report", "-o"], ["audit", "--parquet"], ["pipeline", "watch", "--output"]],
    ids=" ".join,
)
def test_a_job_says_so_before_it_looks_at_the_capture(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    *command, option = words
    target = tmp_path / "file" / "new"
    assert main([*command, "/no/such/capture", option, str(target)]) == 1
    assert capsys.readouterr().err == f"buscoupler: {target}: cannot be written: Not a directory\n"
