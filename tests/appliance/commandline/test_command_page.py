"""The page of all commands is what the parsers say, and its examples are such as they accept."""

import argparse
import re
import runpy
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from appliance.commandline import cli, command_page, manual
from appliance.commandline.parsing import EVERYWHERE, Parser, meaning_of, value_of
from appliance.commandline.table import Command
from appliance.probe.endpoint import rows
from bridges.media import MEDIA
from pipeline import jobs
from pipeline.jobs.record import Job
from tests.helpers import ROOT

MODULE = "appliance.commandline.command_page"
RECORDS: list[tuple[str, Command | Job]] = [
    *cli.commands().items(),
    *((job.name, job) for job in jobs.every()),
]


def test_the_shipped_page_is_what_the_parsers_say() -> None:
    assert command_page.PAGE.read_text() == command_page.page(), "run: make generated"


def test_it_has_each_command_and_each_job_with_its_options() -> None:
    text = command_page.page()
    for name in cli.commands():
        assert f"\n## {name}\n" in text
    for name in ("key new", "pipeline watch", "pipeline tokens"):
        assert f"\n### {name}\n" in text
    assert "| `--interval S` | seconds between heartbeats (1) |" in text


def every_parser() -> Iterator[tuple[str, str, Parser]]:
    """Yield each command and each subcommand: the command, its words, its parser."""
    for name, _, parser in cli.described():
        yield name, name, parser
        yield from ((name, f"{name} {word}", inner) for word, inner in cli.below(name, parser))


def arguments(parser: Parser) -> list[argparse.Action]:
    return [one for one in parser._actions if one.dest not in EVERYWHERE]  # noqa: SLF001


def test_each_command_and_each_argument_says_what_it_is_for() -> None:
    silent = [
        f"{words} {one.dest}"
        for _, words, parser in every_parser()
        for one in arguments(parser)
        if len(meaning_of(one)) < 4 or meaning_of(one).startswith("(")
    ]
    assert silent == []
    assert [words for _, words, parser in every_parser() if not parser.description] == []


def plain(text: str) -> str:
    """Return text without the marks of Markdown and roff, in one line of small letters."""
    text = re.sub(r"\\([-|])", r"\1", text).replace("\\e", "\\")
    return " ".join(re.sub(r"\\f[BR]|\\&|\*\*|`", "", text).lower().split())


def test_the_page_and_the_manual_have_all_that_help_has() -> None:
    page, man = plain(command_page.page()), {name: plain(text) for name, text in manual.pages().items()}
    missing = list[tuple[str, ...]]()
    for name, words, parser in every_parser():
        said = [
            text
            for one in arguments(parser)
            for text in (*one.option_strings, value_of(one), meaning_of(one))
        ]
        said += [parser.description or "", parser.problem, *parser.examples]
        said += [] if parser.endpoints() else [parser.epilog or ""]
        for text in map(plain, said):
            missing += [(words, text)] * (text not in page)
            missing += [(words, "man", text)] * (text not in man[f"buscoupler-{name}.1"])
    assert missing == []


@pytest.mark.parametrize(("name", "record"), RECORDS, ids=[name for name, _ in RECORDS])
def test_each_command_has_examples_that_its_parser_accepts(
    name: str, record: Command | Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plant.yaml").write_text((ROOT / "topologies/field.yaml").read_text())
    assert record.examples
    for example in record.examples:
        words = shlex.split(example.removeprefix('eval "$(').removesuffix(')"'))
        assert words[0] == "buscoupler"
        options = cli.parser(words[1]).parse_args(words[1 : words.index(">") if ">" in words else None])
        assert name in (options.command, vars(options).get("job"))


def test_help_ends_with_the_examples_and_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["diff", "--help"])
    said = capsys.readouterr().out
    assert "examples:\n  buscoupler diff plant.yaml plant-new.yaml\n" in said
    assert "\nexit status 1: a reload would change something; it is 2 for a file with errors\n" in said


def test_an_option_with_many_choices_stays_whole_in_its_usage() -> None:
    parser = Parser(prog="buscoupler x")
    choices = [f"form-{number}-of-some-length" for number in range(8)]
    parser.add_argument("--form", choices=choices, help="a form")
    parser.add_argument("--another-form", help="another")
    assert f"[--form {{{','.join(choices)}}}]" in "\n".join(command_page._usage(parser))  # noqa: SLF001


@pytest.mark.parametrize(("name", "prints"), [("__main__", True), (MODULE, False)])
def test_it_is_printed_only_where_it_runs_as_a_program(
    name: str, prints: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, MODULE)
    runpy.run_module(MODULE, run_name=name)
    assert capsys.readouterr().out == (command_page.page() if prints else "")


@pytest.mark.parametrize(
    "text_of",
    [command_page.page, lambda: manual.pages()["buscoupler-send.1"].replace("\\-", "-")],
    ids=["page", "man"],
)
def test_each_way_to_write_an_endpoint_is_on_the_page_and_in_the_manual(text_of: Callable[[], str]) -> None:
    text = text_of()
    for example, meaning in rows(MEDIA.ours()):
        assert example in text
        assert meaning in text
