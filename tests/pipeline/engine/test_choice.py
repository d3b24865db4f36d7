"""Which engine a command takes, and where: by its options, the environment and what is installed."""

import re
import tomllib
from itertools import combinations

import pytest

pytest.importorskip("pyspark")

from pipeline import jobs
from pipeline.engine import jars, sail
from pipeline.engine.choice import SAIL, SPARK, VARIABLE, Where, decide
from pipeline.engine.session import ALWAYS, ASKED, QUIET, SOUND, for_local, settings
from pipeline.errors import PipelineError
from tests.helpers import ROOT


def chosen(*words: str, able: bool = True) -> Where:
    return decide(jobs.find("audit").parsed("/nowhere", *words), able)


@pytest.fixture(autouse=True)
def _nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", VARIABLE):
        monkeypatch.delenv(name, raising=False)


def test_a_command_takes_spark_on_this_machine_whatever_else_is_installed() -> None:
    assert chosen() == Where(resident=True)
    assert chosen().here
    assert chosen("--no-resident") == Where()
    assert not chosen("--conf", "a=b").resident  # settings are those of a Spark


def test_sail_is_taken_if_the_user_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen("--engine", SAIL).on_sail
    monkeypatch.setenv(VARIABLE, SAIL)
    assert chosen().on_sail
    assert chosen("--engine", SPARK) == Where(resident=True)


def test_a_job_that_cannot_run_on_sail_takes_spark_unless_it_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(PipelineError, match="audit does not run on Sail: it takes Spark"):
        chosen("--engine", SAIL, able=False)
    monkeypatch.setenv(VARIABLE, SAIL)
    assert chosen(able=False) == Where(resident=True)


def test_a_word_that_is_no_engine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "duckdb")
    with pytest.raises(PipelineError, match="BUSCOUPLER_ENGINE=duckdb: give one of spark, sail"):
        chosen()


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (("--master", "local[4]"), Where(master="local[4]")),
        (("--master", "spark://head:7077"), Where(master="spark://head:7077")),
        (("--remote", "sc://127.0.0.1:1"), Where(remote="sc://127.0.0.1:1")),
    ],
)
def test_another_place_is_taken_whatever_the_environment_says(
    words: tuple[str, str], where: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, SAIL)
    assert chosen(*words) == where
    assert chosen(*words).here == where.master.startswith("local")


def test_a_connect_server_or_spark_submit_may_ask_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert chosen().submitted
    assert not chosen().here
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")
    assert chosen() == Where(remote="sc://127.0.0.1:1")
    assert chosen("--engine", SPARK) == Where(resident=True)


def test_without_spark_the_user_is_told_of_sail_if_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "find_spec", lambda name: None)
    if sail.installed():
        with pytest.raises(PipelineError, match="Spark is not installed, but Sail is: give --engine sail"):
            chosen()
    with pytest.raises(PipelineError, match=r"pip install 'buscoupler.(pipeline|engines).'"):
        chosen(able=False)


@pytest.mark.parametrize("words", [("--master", "local[2]"), ("--remote", "sc://127.0.0.1:1")])
def test_two_places_are_refused(words: tuple[str, str]) -> None:
    with pytest.raises(PipelineError, match="give no --master or --remote with it"):
        chosen("--engine", SPARK, *words)


def test_settings_of_this_machine_are_not_taken_to_a_cluster() -> None:
    fixed = "spark.sql.shuffle.partitions"
    assert settings(Where(), ours=True) == {**ALWAYS, **QUIET, **SOUND, **for_local()}
    assert fixed in settings(Where(master="local[2]"), ours=True)
    assert settings(Where(master="spark://head:7077"), ours=True) == {**ALWAYS, **QUIET, **SOUND}
    assert settings(Where(submitted=True), ours=False) == ALWAYS
    assert settings(Where(remote="sc://head"), ours=False) == {**ALWAYS, **ASKED}


def test_what_the_user_sets_wins() -> None:
    where = chosen("--conf", "spark.sql.shuffle.partitions=400", "--conf", "a=b=c")
    assert where.conf == {"spark.sql.shuffle.partitions": "400", "a": "b=c"}
    assert settings(where, ours=True)["spark.sql.shuffle.partitions"] == "400"
    assert settings(where, ours=True)["a"] == "b=c"


@pytest.mark.parametrize("word", ["", "name", "=value"])
def test_a_setting_without_a_name_or_value_is_wrong_use(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        chosen("--conf", word)
    assert "give NAME=VALUE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("versions", "is_clash"),
    [
        ({"pyspark": "4.3.0"}, False),
        ({"pyspark": "4.3.0", "pyspark-client": "4.3.0"}, False),
        ({"pyspark": "4.3.0", "pyspark-client": "4.2.0"}, True),
    ],
)
def test_two_versions_of_pyspark_over_each_other_are_refused_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, versions: dict[str, str], is_clash: bool
) -> None:
    monkeypatch.setattr(jars, "_version", lambda name: versions.get(name, ""))
    if not is_clash:
        assert chosen().resident
        return
    for words in (), ("--engine", SAIL), ("--remote", "sc://127.0.0.1:1"), ("--master", "local[2]"):
        with pytest.raises(PipelineError) as told:
            chosen(*words)
        assert "pyspark 4.3.0 and pyspark-client 4.2.0 are installed over each other" in str(told.value)
        assert str(told.value).endswith("install 'buscoupler[engines]'")


def brought(extras: dict[str, list[str]], name: str) -> set[str]:
    """The distributions that an extra asks for, those of other extras with them."""
    found = set[str]()
    for word in extras[name]:
        if ours := re.match(r"buscoupler\[(.*?)\]", word):
            found |= {one for other in ours[1].split(",") for one in brought(extras, other)}
        else:
            found.add(re.split(r"[\[<>=!~; ]", word)[0])
    return found


def test_no_two_extras_bring_pyspark_twice_but_those_that_the_page_and_commands_name() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    both = {"pyspark", "pyspark-client"}
    alone = {name: brought(extras, name) for name in extras}
    assert not [name for name, its in alone.items() if both <= its]
    spark = {name for name, its in alone.items() if "pyspark" in its}
    fighting = {
        frozenset(pair) for pair in combinations(extras, 2) if both <= alone[pair[0]] | alone[pair[1]]
    }
    assert fighting == {frozenset(("sail", name)) for name in spark}
    assert spark >= {"pipeline", "connect", "engines"}
    assert "never `sail` beside `pipeline` or `connect`" in (ROOT / "docs" / "pipeline.md").read_text()
