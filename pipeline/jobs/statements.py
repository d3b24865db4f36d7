"""Statements of SQL: what one does, as the parser of its engine says. Nothing is done to find out."""

import re
from typing import TYPE_CHECKING, Final

from pipeline.cache import writes_down
from pipeline.errors import PipelineError, cause_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUERY: Final = "EXPLAIN EXPLAIN CREATE TEMPORARY VIEW judged AS\n"
"""The words that a query can follow, and no command. The outer one of two EXPLAIN only parses what the inner
one is given: EXECUTE IMMEDIATE would be done while it is analysed."""
_COMMAND: Final = "EXPLAIN EXTENDED EXPLAIN\n"
_NAMED: Final = re.compile(r"ExplainCommand '?(\w+)|CatalogCommandExec: (\w+)|((?:FileDelete|DataSink)Exec)")
"""The name of a command: of Spark's class; or of Sail's, or the first step of its plan for files."""
_WITH: Final = "CTE"
_BEHIND_WITH: Final = re.compile(r"^\+- '?(\w+)", re.MULTILINE)
_READING: Final = re.compile(
    r"(?:Show|List|Describe|Explain|Cache|Uncache|Refresh|Clear|Reset)\w+"
    r"|Set(?:Command|Variable|Catalog|Current|NamespaceCommand)\w*"
    r"|CreateViewCommand|CreateTempViewUsing|CreateTemporaryView"  # of Spark, `CreateView` is one that stays
    r"|(?:Create|Drop)(?:SQL)?FunctionCommand|(?:Create|Drop)Variable"  # so of functions
    r"|Add\w+Command"
    r"|InsertIntoDir"
)
"""The commands that read, or make what ends with the shell, or write where they say."""
_REPLACES: Final = "FileDeleteExec"
_GAP: Final = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)"
_TO_DIRECTORY: Final = re.compile(
    rf"{_GAP}*+INSERT{_GAP}++OVERWRITE{_GAP}++(?:LOCAL{_GAP}++)?DIRECTORY{_GAP}*+['\"]", re.I | re.S
)
"""Sail has one plan for this and for a view of files, which it would replace."""
_EXPLAINED: Final = re.compile(
    rf"{_GAP}*+EXPLAIN\b(?:{_GAP}++(?:(?P<does>ANALYZE)|EXTENDED|CODEGEN|COST|FORMATTED|VERBOSE)\b)?",
    re.I | re.S,
)
_LINE: Final = re.compile(r"\(line (\d+),")
_REFUSED: Final = (
    "sql stores no tables and changes none: they would be in spark-warehouse, wherever Spark was started, or "
    "are others'. CREATE TEMPORARY VIEW lasts as long as the shell, and INSERT OVERWRITE DIRECTORY '/PATH' "
    "USING parquet SELECT ... writes to that place"
)


def check(spark: "SparkSession", statement: str) -> None:
    """Raise `PipelineError` for a statement that would store or change tables, or that Spark cannot read.

    What Sail cannot explain it cannot do: then nothing is raised, and Sail says why."""
    statement = _does(statement) if writes_down(spark) else statement
    try:
        spark.sql(_QUERY + statement)
    except Exception:  # it is a command, or wrong
        name = _name(spark, statement)
        may = bool(_TO_DIRECTORY.match(statement)) if name == _REPLACES else _READING.fullmatch(name)
        if name and not may:
            raise PipelineError(_REFUSED) from None


def _does(statement: str) -> str:
    """Return what a statement of Sail does: EXPLAIN ANALYZE does what it explains, also where that is
    explained."""
    rest, does = statement, False
    while found := _EXPLAINED.match(rest):
        rest, does = rest[found.end() :], does or found["does"] is not None
    return rest if does else statement


def _name(spark: "SparkSession", statement: str) -> str:
    """Return the name of a command; "" if it has none of those that store."""
    try:
        found = _NAMED.search(_explained(spark, _COMMAND + statement))
        name = found[1] or found[2] or found[3] if found else ""
        if name != _WITH:
            return name
        behind = _BEHIND_WITH.search(_explained(spark, f"EXPLAIN EXTENDED {statement}"))
        return behind[1] if behind else name
    except Exception as error:
        if writes_down(spark):
            return ""
        words = _LINE.sub(lambda found: f"(line {int(found[1]) - 1},", cause_of(str(error)))
        raise PipelineError(words) from None


def _explained(spark: "SparkSession", statement: str) -> str:
    return str(spark.sql(statement).collect()[0][0])
