"""What pyspark looks up in Java is asked for once."""

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from py4j.clientserver import JavaClient
from pyspark.sql import functions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOKUP = "r\n"
"""How a request of py4j begins that asks what a name is."""


def made(spark: "SparkSession") -> list[object]:
    column = functions.coalesce(functions.col("id"), functions.lit(7)) + functions.lit(1)
    return [row[0] for row in spark.range(3).select(functions.sum(column)).collect()]


def test_a_name_is_looked_up_once(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    asked, send = list[str](), JavaClient.send_command

    def counted(self: Any, command: str, *more: Any, **others: Any) -> Any:
        asked.append(command)
        return send(self, command, *more, **others)

    assert made(spark) == [6]
    monkeypatch.setattr(JavaClient, "send_command", counted)
    assert made(spark) == [6]
    lookups = [command.split("\n")[1:4] for command in asked if command.startswith(LOOKUP)]
    assert [words for words in lookups if "functions" in "".join(words)] == []
    assert len(lookups) < len(asked) / 10, lookups


def test_what_java_lacks_is_an_error_each_time(spark: "SparkSession") -> None:
    from py4j.protocol import Py4JError

    view: Any = spark.sparkContext._jvm  # noqa: SLF001
    for _ in range(2):
        with pytest.raises(Py4JError, match="no_such_function"):
            view.functions.no_such_function(1)
