"""Words of a condition are ends of the names of signals, but for those of SQL."""

import pytest

from pipeline.signals.conditions import parse


@pytest.mark.parametrize(
    ("text", "names", "sql"),
    [
        ("engine/rpm > 3000", ("engine/rpm",), "s0 > 3000"),
        (
            "rpm between 1 and 2 and not gear = 'Drive'",
            ("rpm", "gear"),
            "s0 between 1 and 2 and not t1 = 'Drive'",
        ),
        ("abs(a) < b / 2 or a is null", ("a", "b"), "abs(s0) < s1 / 2 or s0 is null"),
        ("`a b/c-d` in ('x', 'rpm')", ("a b/c-d",), "t0 in ('x', 'rpm')"),
        ("gps.lat > 1e3 and 'it''s a' <> x/y.z", ("gps.lat", "x/y.z"), "s0 > 1e3 and 'it\\'s a' <> t1"),
        (r"gear = 'it\'s' and a > 1", ("gear", "a"), r"t0 = 'it\'s' and s1 > 1"),
        ('gear = "Drive" and rpm > 1', ("gear", "rpm"), "t0 = 'Drive' and s1 > 1"),
        ('''"it's ""a" = gear or x rlike "\\d'"''', ("gear", "x"), r"""'it\'s "a' = t0 or t1 rlike '\d\''"""),
        ("`it's` > 1 and gear <> ''", ("it's", "gear"), "s0 > 1 and t1 <> ''"),
        ("außen > 3 and Größe/Öl.t < 1", ("außen", "Größe/Öl.t"), "s0 > 3 and s1 < 1"),
        ("'Drive' = gear or gear >= 'E'", ("gear",), "'Drive' = t0 or t0 >= 'E'"),
        ("lower(gear) = 'drive' and abs(gear) < 3", ("gear",), "lower(t0) = 'drive' and abs(s0) < 3"),
        (
            "gear not between 'A' and 'B' or gear ilike 'd%'",
            ("gear",),
            "t0 not between 'A' and 'B' or t0 ilike 'd%'",
        ),
        ("GEAR NOT LIKE 'D%' AND GEAR > 1", ("GEAR",), "t0 NOT LIKE 'D%' AND s0 > 1"),
    ],
)
def test_a_condition_is_sql_over_signals(text: str, names: tuple[str, ...], sql: str) -> None:
    found = parse(text)
    assert (found.names, found.sql) == (names, sql)


def test_a_condition_without_a_signal_is_none() -> None:
    with pytest.raises(ValueError, match="no signal is in it"):
        parse("1 = 1 and 'rpm' = 'x'")


def test_what_has_no_numbers_is_text_everywhere() -> None:
    found = parse("state is not null and rpm > 1 and concat(rpm, state) = other", {"state", "other"})
    assert found.sql == "t0 is not null and s1 > 1 and concat(t1, t0) = t2"
