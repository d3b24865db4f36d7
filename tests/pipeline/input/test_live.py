"""How a stream of a recorder's directory divides a batch into tasks."""

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from capture.live import Piece
from pipeline.input.live import packed


def test_small_files_share_a_task_and_a_large_one_has_its_own() -> None:
    found = [Piece(str(n), "gw", 1, 10 * n, 10 * n + 9) for n in range(10)]
    parts = packed([found[0]._replace(last=199), *found[1:]], 40)
    assert [[one.path for one in part] for part in parts] == [["0"], list("1234"), list("5678"), ["9"]]
    assert packed([], 40) == []
