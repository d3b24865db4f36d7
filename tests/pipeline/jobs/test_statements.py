"""What each statement of SQL may do: each engine's own parser says, before anything is done."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from pipeline.cache import writes_down
from pipeline.engine.choice import SAIL, SPARK
from pipeline.errors import PipelineError
from pipeline.jobs.statements import check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engines(SPARK, SAIL)

STORING = (
    "CREATE TABLE t AS SELECT 1 AS a",
    "create or replace table t (a int)",
    "CREATE/**/TABLE t (a int) USING parquet",
    "REPLACE TABLE t AS SELECT 1",
    "-- a note\n/* and\nanother */ CREATE DATABASE d",
    "CREATE VIEW v AS SELECT 1",
    "CREATE TABLE t LIKE five",
    " CREATE EXTERNAL TABLE t (a int)",
    "CREATE FUNCTION f AS 'a.B'",
    "CREATE FUNCTION f(x INT) RETURNS INT RETURN x",
    "INSERT INTO t SELECT 1",
    "INSERT/**/INTO t SELECT 1",
    "INSERT INTO parquet.`/x` SELECT 1",
    "insert overwrite table t select 1",
    "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x",
    "WITH x AS (SELECT 'INSERT OVERWRITE DIRECTORY') INSERT INTO t SELECT * FROM x",
    "FROM five INSERT INTO t SELECT a INSERT INTO u SELECT a",
    "EXECUTE IMMEDIATE 'CREATE TABLE t (a int) USING parquet'",
    "BEGIN CREATE TABLE t (a int) USING parquet; END",
    "DROP TABLE t",
    "DROP DATABASE d",
    "DROP FUNCTION f",
    "ALTER TABLE t RENAME TO u",
    "DELETE FROM t WHERE a = 1",
    "UPDATE t SET a = 1",
    "MERGE INTO t USING five AS s ON t.a = s.a WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE t",
    "LOAD DATA INPATH '/x' INTO TABLE t",
    "ANALYZE TABLE t COMPUTE STATISTICS",
    "MSCK REPAIR TABLE t",
    "COMMENT ON TABLE t IS 'x'",
)
READING = (
    "SELECT 1 AS create",
    "SELECT 'INSERT INTO t'",
    "SELECT 1; -- CREATE TABLE t (a int)",
    "(SELECT 1) UNION ALL SELECT 2",
    "WITH x AS (SELECT 1) SELECT * FROM x",
    "TABLE five",
    "VALUES (1)",
    "/* a note */\n" * 60 + "SELECT 1",
    "SHOW TABLES",
    "DESCRIBE TABLE five",
    "EXPLAIN SELECT 1",
    "EXPLAIN CREATE TABLE t (a int)",
    "CREATE TEMPORARY VIEW v1 AS SELECT 1",
    "create or replace temp view v1 as select 1",
    "CREATE GLOBAL TEMP VIEW v2 AS SELECT 1",
)
FOR_SPARK = (
    "SET spark.sql.shuffle.partitions=2",
    "FROM five SELECT a",
    "FROM five |> SELECT a",
    "DESCRIBE five",
    "CACHE TABLE five",
    "UNCACHE TABLE five",
    "DECLARE VARIABLE z = 3",
    "SET VARIABLE z = 4",
    "USE default",
    "USE SCHEMA default",
    "CREATE TEMPORARY FUNCTION g(x INT) RETURNS INT RETURN x + 1",
    "DROP TEMPORARY FUNCTION g",
)
WRITING = "INSERT OVERWRITE /*x*/ DIRECTORY '{}' USING parquet SELECT 1 AS a"
WRITING_OF_SPARK = (
    "FROM five INSERT OVERWRITE DIRECTORY '{}' USING parquet SELECT a",
    "WITH x AS (SELECT 1 AS a) INSERT OVERWRITE DIRECTORY '{}' USING parquet SELECT * FROM x",
)


@pytest.fixture(scope="module", autouse=True)
def five(spark: "SparkSession") -> None:
    spark.range(5).toDF("a").createOrReplaceTempView("five")


def done(spark: "SparkSession", statement: str) -> None:
    check(spark, statement)
    spark.sql(statement).toArrow()


def stored(spark: "SparkSession") -> set[str]:
    shown = spark.sql("SHOW TABLES").collect()
    return {row["tableName"] for row in shown if not row["isTemporary"]}


def test_nothing_is_stored_where_nobody_looks_for_it(spark: "SparkSession") -> None:
    """A table was in `spark-warehouse`, in the directory in which the command ran. What Sail does not know,
    it refuses itself."""
    for statement in STORING:
        with pytest.raises(Exception, match=r"\S") as told:
            done(spark, statement)
        if not writes_down(spark):
            said = "Syntax error" if statement.startswith("BEGIN") else "CREATE TEMPORARY VIEW lasts"
            assert isinstance(told.value, PipelineError), statement
            assert said in str(told.value), statement
    assert stored(spark) == set()


@pytest.mark.engines(SAIL)
def test_sail_is_not_asked_for_a_table(spark: "SparkSession") -> None:
    for statement in (*STORING[:3], STORING[5]):
        with pytest.raises(PipelineError, match="CREATE TEMPORARY VIEW lasts"):
            check(spark, statement)


REPLACING = (
    "INSERT OVERWRITE files SELECT 2 AS a",
    "INSERT OVERWRITE TABLE files SELECT 2 AS a",
    "INSERT INTO files SELECT 2 AS a",
)


@pytest.mark.engines(SAIL)
def test_files_of_which_a_view_is_made_stay_as_they_are(spark: "SparkSession", tmp_path: Path) -> None:
    """Sail replaced them; and to judge EXPLAIN ANALYZE, which does what it explains, did so."""
    done(spark, WRITING.format(tmp_path / "files"))
    done(spark, f"CREATE TEMPORARY VIEW files USING parquet OPTIONS (path '{tmp_path / 'files'}')")
    before = {path.name for path in (tmp_path / "files").iterdir()}
    for words in (
        "",
        "EXPLAIN ANALYZE ",
        "/*x*/ explain\n-- so\nanalyze ",
        "EXPLAIN EXTENDED EXPLAIN ANALYZE ",
    ):
        for statement in REPLACING:
            with pytest.raises(PipelineError, match="CREATE TEMPORARY VIEW lasts"):
                check(spark, words + statement)
    assert {path.name for path in (tmp_path / "files").iterdir()} == before
    done(spark, "EXPLAIN ANALYZE SELECT * FROM files")
    done(spark, f"EXPLAIN ANALYZE {WRITING.format(tmp_path / 'more')}")
    assert [*(tmp_path / "more").glob("*.parquet")]


def test_what_reads_or_ends_with_the_shell_is_answered(spark: "SparkSession") -> None:
    for statement in READING + (() if writes_down(spark) else FOR_SPARK):
        done(spark, statement)


def test_a_statement_may_write_where_it_says(spark: "SparkSession", tmp_path: Path) -> None:
    for number, statement in enumerate((WRITING, *(() if writes_down(spark) else WRITING_OF_SPARK))):
        done(spark, statement.format(tmp_path / str(number)))
        assert [*(tmp_path / str(number)).glob("*.parquet")], statement


@pytest.mark.engines(SPARK)
def test_a_wrong_statement_is_told_with_its_own_lines(spark: "SparkSession") -> None:
    with pytest.raises(PipelineError, match=r"at or near 'SELEC'\..* \(line 2, pos 1\)"):
        check(spark, "-- a note\n SELEC 1")
