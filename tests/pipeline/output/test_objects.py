"""Lines of JSON of rows."""

from math import inf, nan

from pipeline.output.objects import line


def test_numbers_that_are_not_finite_are_null() -> None:
    row = {"a": nan, "b": [inf, 1.5, (-inf,)], "c": b"x", "d": {"e": nan, "f": None}, "g": 3}
    said = '{"a": null, "b": [null, 1.5, [null]], "c": "b\'x\'", "d": {"e": null, "f": null}, "g": 3}'
    assert line(row, str) == said
