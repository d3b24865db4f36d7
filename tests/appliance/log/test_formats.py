"""The forms of a line, from one record."""

import json
import logging
import os
import re
import sys
from pathlib import Path

import pytest

from appliance.log.formats import FORMATS, default

RECORD = logging.LogRecord("buscoupler.tap", logging.WARNING, "", 0, "no room\non disk", None, None)


def line(form: str, record: logging.LogRecord = RECORD) -> str:
    return FORMATS[form](record, record.getMessage())


def test_text_has_time_level_and_logger() -> None:
    pattern = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4} WARNING buscoupler\.tap: no room\n  on disk"
    assert re.fullmatch(pattern, line("text"))


@pytest.mark.parametrize(
    ("level", "priority"),
    [(logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6), (logging.DEBUG, 7)],
)
def test_the_journal_gets_a_priority_on_each_line_and_no_time(level: int, priority: int) -> None:
    record = logging.LogRecord("buscoupler.tap", level, "", 0, "no room\non disk", None, None)
    assert line("journal", record) == f"<{priority}>buscoupler.tap: no room\n<{priority}>  on disk"


def test_json_is_one_line_with_the_keys_that_the_page_has() -> None:
    record = logging.LogRecord("buscoupler.events", logging.INFO, "", 0, "lease: ...", None, None)
    record.fields = {"event": {"kind": "lease"}}
    try:
        raise ValueError("on purpose")
    except ValueError:
        record.exc_info = sys.exc_info()
    (text,) = line("json", record).splitlines()
    told = json.loads(text)
    assert list(told) == ["time", "level", "logger", "message", "event", "stack"]
    assert told["level"] == "info"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", told["time"])
    assert "ValueError: on purpose" in told["stack"]
    page = (Path(__file__).parents[3] / "docs" / "log.md").read_text()
    assert [key for key in told if f"| `{key}` |" not in page] == []


def test_under_systemd_it_is_the_journal_and_only_if_the_journal_reads_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with (tmp_path / "log").open("w") as file:
        monkeypatch.setattr(sys, "stderr", file)
        assert default() == "text"
        status = os.fstat(file.fileno())
        monkeypatch.setenv("JOURNAL_STREAM", f"{status.st_dev}:{status.st_ino}")
        assert default() == "journal"
        monkeypatch.setenv("JOURNAL_STREAM", f"{status.st_dev}:{status.st_ino + 1}")
        assert default() == "text"


@pytest.mark.parametrize("form", ["text", "journal"])
def test_what_a_peer_calls_itself_moves_no_cursor(form: str) -> None:
    record = logging.LogRecord("buscoupler.proxy", logging.INFO, "", 0, "joined \x1b[2J\udcff", None, None)
    assert line(form, record).endswith("joined ?[2J?")
