"""The records of the jobs: the command line, the engines and the exit status derive from them."""

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.commandline import cli
from appliance.commandline.table import COMMANDS
from capture.files import CaptureError
from pipeline import jobs
from pipeline.engine.choice import SAIL
from pipeline.jobs.record import Job
from pipeline.jobs.runner import run
from tests.helpers import ROOT

RECORDS = list(jobs.every())


def test_each_module_has_a_record_and_each_record_a_line() -> None:
    found = {path.stem for path in Path(jobs.__file__).parent.glob("*.py")} - {
        "__init__",
        "record",
        "runner",
        "opening",
        "words",
        "asked",
        "rehearsal",
        "ranges",
        "statements",
    }
    assert found == set(jobs.NAMES)
    assert [job.name for job in RECORDS] == list(jobs.NAMES)


def test_each_job_does_one_thing_in_one_way() -> None:
    for job in RECORDS:
        assert [job.tables is None, job.run is None, job.process is None].count(False) == 1, job.name
        assert job.tables or not job.faults, job.name
        assert job.process is None or not job.has_names, job.name


def test_all_jobs_but_watch_run_without_java_as_the_message_about_a_missing_one_says() -> None:
    assert [job.name for job in RECORDS if job.engines and SAIL not in job.engines] == ["watch"]


def test_commands_of_their_own_are_jobs_of_the_pipeline() -> None:
    assert {job.name for job in RECORDS if job.is_command} <= set(cli.commands())
    assert set(cli.commands("audit")) - set(COMMANDS) == {"audit"}
    assert set(cli.commands("tokens")) == set(COMMANDS)  # because another command has that name


@pytest.mark.parametrize("name", jobs.NAMES)
def test_each_job_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["pipeline", name, "--help"])
    assert stop.value.code == 0
    assert jobs.find(name).help.split()[0] in capsys.readouterr().out


def test_options_follow_from_the_record() -> None:
    for job in RECORDS:
        parser = argparse.ArgumentParser()
        job.add_arguments(parser)
        options = {word for action in parser._actions for word in action.option_strings}  # noqa: SLF001
        assert ("--parquet" in options) == (job.tables is not None)
        assert ("--json" in options) == (job.tables is not None or job.name == "sql")
        assert ("--master" in options) == (job.process is None)
        assert ("--names" in options) == job.has_names


NUMBERS = [
    (job.name, names[0], settings["default"])
    for job in RECORDS
    for names, settings in job.options
    if isinstance(settings.get("default"), int | float)
] + [("signals", "--resample-ms", 100.0)]


@pytest.mark.parametrize(("job", "option", "usual"), NUMBERS)
def test_a_number_out_of_range_is_wrong_use(
    job: str, option: str, usual: float, capsys: pytest.CaptureFixture[str]
) -> None:
    record, before = jobs.find(job), [] if job == "serve" else ["/somewhere"]
    more = ["--output", "x"] if job == "watch" else ["-o", "x"] if job == "report" else []
    record.parsed(*before, *more, option, str(usual))
    for word in ("-1", "x", "nan", "inf", "1e999", "", "1e300", f"1{18 * '0'}", "1e-300"):
        with pytest.raises(SystemExit) as stop:
            record.parsed(*before, *more, option, word)
        assert stop.value.code == 2
        assert f"argument {option}: {word!r} is no " in capsys.readouterr().err


def test_the_numbers_of_all_jobs_are_looked_at() -> None:
    assert {("audit", "--window-ms"), ("rates", "--seconds"), ("serve", "--port")} <= {
        one[:2] for one in NUMBERS
    }
    for word, fits in (("0", False), ("1", True), ("255", True), ("256", False), ("2.5", False)):
        try:
            assert jobs.find("rates").parsed("/x", "--depth", word).depth == int(word)
        except SystemExit:
            assert not fits


def test_help_needs_no_spark_and_nothing_that_only_some_jobs_use() -> None:
    late = {"pyspark", "importlib.metadata", "urllib.request", "http.client", "ssl"}
    code = f"import sys; from pipeline import jobs; list(jobs.every()); print(*({late} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "\n", done.stderr


@pytest.mark.parametrize(
    ("job", "option"),
    [pytest.param(job, option, id=job.name) for job in RECORDS for option in job.writes],
)
def test_no_job_writes_over_the_file_that_it_is_asked_about(job: Job, option: str, tmp_path: Path) -> None:
    log = tmp_path / "drive.log"
    log.write_text("(1700000000.000000) can0 123#11\n")
    with pytest.raises(CaptureError, match="is the file that is read"):
        run(job, job.parsed(str(log), f"--{option}", str(log)))
    assert log.read_text().startswith("(17")
