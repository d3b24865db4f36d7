"""Each block of each page has a language. Programs in blocks are run, or a comment says why not."""

import ast
import json
import re
import shutil
import tomllib
from collections import Counter
from collections.abc import Callable
from configparser import ConfigParser
from pathlib import Path

import pytest

from appliance.commands.check import findings_of
from tests.docs.dry import faults
from tests.docs.player import STAGES, follow, name_of, stage_of
from tests.helpers import ROOT
from tests.helpers.shown import PAGES, Clone, blocks, end_of
from tests.system.namespaces import why_not

LANGUAGES = {"sh", "python", "c", "text", "yaml", "json", "toml", "ini", "mermaid", "sql"}
READERS: dict[str, Callable[[str], object]] = {
    "json": json.loads,
    "toml": tomllib.loads,
    "ini": lambda text: ConfigParser().read_string(text),
}
RUN = [page for page in PAGES if any(block.is_run for block in blocks(page))]
each_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_the_page_works_as_it_is_written(page: Path, tmp_path: Path) -> None:
    for package in ("pysail", "can", "serial", "rich", "msgpack"):
        pytest.importorskip(package)
    if not shutil.which("socat"):
        pytest.skip("Debian package socat")
    if any("ip netns" in block.text for block in blocks(page)) and (why := why_not()):
        pytest.skip(why)
    follow(page, tmp_path)


@each_page
def test_each_block_has_a_language(page: Path) -> None:
    text, found = page.read_text(), blocks(page)
    assert len(re.findall(r"^ *```", text, re.MULTILINE)) == 2 * len(found)
    assert [(block.line, block.kind) for block in found if block.kind not in LANGUAGES] == []
    assert text.count("<!-- not run") == sum(bool(block.reason) for block in found)
    assert re.findall(r"^ *\*\w+ terminal\*\n(?! *```)", text, re.MULTILINE) == []


@each_page
def test_data_and_python_can_be_read(page: Path) -> None:
    for block in blocks(page):
        if block.kind in READERS:
            READERS[block.kind](block.text)
        elif block.kind == "python":
            compile(block.text, f"{page}:{block.line}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@each_page
def test_parsers_accept_what_is_not_run(page: Path, tmp_path: Path) -> None:
    found = {
        block.line: faults(block.text, tmp_path)
        for block in blocks(page)
        if block.kind == "sh" and block.reason
    }
    assert {line: wrong for line, wrong in found.items() if wrong} == {}


def test_most_programs_on_pages_are_run() -> None:
    found = [block for page in PAGES for block in blocks(page) if block.is_program]
    reasons = Counter(block.reason for block in found if block.reason)
    counted = "\n".join(f"{count:4} {reason}" for reason, count in reasons.most_common())
    assert sum(reasons.values()) < 0.75 * len(found), counted


def test_each_stage_is_of_a_page_that_is_run() -> None:
    assert len(list(STAGES.iterdir())) == sum(bool(stage_of(page)) for page in RUN)


COPY = re.compile(r"^.*?cp (topologies/\S+) \S*?([\w-]+\.yaml)$", re.MULTILINE)
WRITE = re.compile(r"^cat (>>?) \S*?([\w-]+\.yaml) <<'END'\n(.*?)^END$", re.MULTILINE | re.DOTALL)
CHECK = re.compile(r"^buscoupler check \S*?([\w-]+\.yaml)$", re.MULTILINE)


def untold(page: Path) -> list[str]:
    """Return the findings in the files that a page writes and checks which the block behind does not show."""
    missing, shown = list[str](), blocks(page)
    for number, block in enumerate(shown[:-1]):
        for source, name in COPY.findall(block.text):
            Path(name).write_text((ROOT / source).read_text())
        for mode, name, text in WRITE.findall(block.text):
            with Path(name).open("a" if mode == ">>" else "w") as file:
                file.write(text)
        for name in CHECK.findall(block.text)[:1]:
            told = [line[max(line.find(name), 0) :] for line in shown[number + 1].text.splitlines() if line]
            found = map(str, findings_of(name) if Path(name).exists() else ())
            missing += [one for one in found if all(end_of(line, one) is None for line in told)]
    return missing


def test_what_check_finds_in_the_files_of_pages_is_on_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for page in RUN:
        home = tmp_path / name_of(page).replace("/", "-")
        home.mkdir()
        monkeypatch.chdir(home)
        assert untold(page) == [], page


HELD = re.compile(
    r"(?:[\w.\]*]:|port[:=] ?|127\.0\.0\.1\", )(\d{4,5})\b|(/tmp/[\w.-]+)|\b(tutorial-[ab])\b|(/dev/shm/\S+)"
)
"""What two clones on one machine cannot both have: ports, files outside of the clone, hosts."""


def held(text: str) -> set[str]:
    return {next(filter(None, found)) for found in HELD.findall(text)}


def test_two_clones_on_one_machine_hold_nothing_in_common(tmp_path: Path) -> None:
    texts = [path.read_text() for path in sorted((ROOT / "topologies").glob("*.yaml"))]
    texts += [block.text for page in RUN for block in blocks(page) if block.is_run]
    texts += [stage_of(page) for page in RUN]
    homes = [tmp_path / "one", tmp_path / "other"]
    for home in homes:
        home.mkdir()
    one, other = map(Clone, homes)
    try:
        mine, others = (
            [held(clone.here(text).replace(str(clone.home), "")) for text in texts] for clone in (one, other)
        )
        both = [first & second for first, second in zip(mine, others, strict=True)]
        assert set().union(*both) == set()
        runtime = [clone.environment["XDG_RUNTIME_DIR"] for clone in (one, other)]
        assert len(set(runtime)) == 2
    finally:
        one.clear()
        other.clear()
    assert not any(Path(directory).exists() for directory in runtime)
    assert held("tcp://*:5555 port: 9943 /tmp/tutorial/line tutorial-a") == {
        "5555",
        "9943",
        "/tmp/tutorial",
        "tutorial-a",
    }
