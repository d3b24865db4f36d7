"""Python's side of Spark: a command loads no pandas, which pyarrow and the client of Connect would."""

import subprocess
import sys
from typing import Final

import pytest

from tests.helpers import ROOT

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")
pytest.importorskip("pandas")

SPARK: Final = """
import sys
from pipeline.engine.python_side import import_pyspark
import_pyspark()
import pyarrow
pyarrow.array([1])
import pyspark.sql.functions, pyspark.testing.utils
print("pandas" in sys.modules, pyspark.testing.utils.have_pandas)
"""
CLIENT: Final = """
import sys
from pipeline.engine.python_side import import_client
import_client()
import pyarrow
from pyspark.sql.connect import session
is_table = isinstance(pyarrow.table({"a": [1]}), session.pd.DataFrame)
print(is_table, "pandas" in sys.modules)
import pandas
print(isinstance(pandas.DataFrame(), session.pd.DataFrame), isinstance(1, session.pd.DataFrame))
"""
ON_SAIL: Final = """
import sys
from pipeline.analysis.shared.frames import local_table
from pipeline.engine import session
from pipeline.engine.choice import SAIL, Where

place = Where(SAIL, memory="1g")
with session.session(place, session.start(place)) as spark:
    table = local_table(spark, {"name": str, "n": int}, [("a", 1), ("b", 2)])
    found = table.where("n > 1").collect()
    print(*map(tuple, found), table.toArrow().num_rows, "pandas" in sys.modules)
    import pandas
    times = pandas.to_timedelta([1, 2], "s")
    given = spark.createDataFrame(pandas.DataFrame({"a": [5, 6], "t": times}))
    print(given.toPandas()["a"].tolist())
"""


def printed(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_pyspark_and_arrays_of_arrow_load_no_pandas() -> None:
    assert printed(SPARK) == ["False True"]


def test_the_client_of_connect_loads_no_pandas() -> None:
    pytest.importorskip("grpc")
    assert printed(CLIENT) == ["False False", "True False"]


def test_a_session_on_sail_has_small_tables_without_pandas_and_takes_those_of_pandas() -> None:
    """A table of pandas once became one of the names of its columns."""
    pytest.importorskip("pysail")
    assert printed(ON_SAIL) == ["('b', 2) 2 False", "[5, 6]"]
