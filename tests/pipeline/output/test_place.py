"""Places to write, looked at before an engine starts."""

from pathlib import Path

import pytest

from appliance.commandline.cli import main
from pipeline.errors import PipelineError
from pipeline.jobs import find
from pipeline.output.place import check, check_table


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


@pytest.mark.parametrize(("job", "option"), [("signals", "--output"), ("load", "--to")])
def test_a_table_and_a_capture_are_not_in_each_other(job: str, option: str, tmp_path: Path) -> None:
    record = find(job)
    act = record.prepare or record.process
    assert act is not None
    (tmp_path / "link").symlink_to(tmp_path)
    places = {
        (tmp_path, tmp_path): "would be in the capture",
        (tmp_path, tmp_path / "a/b"): "would be in the capture",
        (tmp_path / "a", tmp_path / "link"): "the capture is in it",
        ("s3://plant/a", "s3a://plant/a/b"): "would be in the capture",
        ("s3://plant/a?region=x", "s3://plant"): "the capture is in it",
    }  # fmt: skip
    for (capture, table), words in places.items():
        options = record.parsed(str(capture), option, str(table))
        with pytest.raises(PipelineError, match=f"{option} .*{words}"):
            act(options)
    check_table(option, str(tmp_path / "ab"), str(tmp_path / "a"))
    check_table(option, "s3://plant/ab", "s3://plant/a")
