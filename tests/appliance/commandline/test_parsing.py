# ruff: noqa: SLF001 - argparse has no public way to these
"""The parser of the command line, and the private members of argparse that it uses: they do what it needs."""

import argparse
import inspect
import io
from collections.abc import Iterator
from typing import Any

import pytest

from appliance.commandline import cli
from appliance.commandline.parsing import Parser
from bus.leases.settings import BrokerSettings
from bus.schema import settings

METHODS: dict[str, list[str]] = {
    "_get_positional_actions": [],
    "_get_values": ["action", "arg_strings"],
    "_print_message": ["message", "file"],
    "_check_value": ["action", "value"],
}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_of_argparse_is_there_with_its_arguments(name: str) -> None:
    method = getattr(argparse.ArgumentParser, name)
    assert list(inspect.signature(method).parameters)[1:] == METHODS[name]


def made() -> tuple[argparse.ArgumentParser, Any]:
    parser = argparse.ArgumentParser(prog="p")
    parser.add_argument("file", nargs="?")
    parser.add_argument("--level", "-l", choices=["low", "high"])
    return parser, parser


def test_a_parser_lists_its_actions_and_its_options_by_their_words() -> None:
    parser, private = made()
    assert {action.dest for action in private._actions} == {"help", "file", "level"}
    assert [action.dest for action in private._get_positional_actions()] == ["file"]
    assert set(private._option_string_actions) == {"--help", "-h", "--level", "-l"}
    assert private._subparsers is None
    parser.add_subparsers().add_parser("run")
    assert private._subparsers is not None


def test_the_action_of_subcommands_has_their_parsers_as_choices() -> None:
    parser = argparse.ArgumentParser()
    below = parser.add_subparsers()
    run = below.add_parser("run")
    private: Any = argparse
    assert isinstance(below, private._SubParsersAction)
    assert below.choices == {"run": run}


def test_values_of_an_argument_are_converted_and_a_wrong_choice_is_an_argument_error() -> None:
    parser, private = made()
    number = parser.add_argument("number", nargs="?", type=int)
    assert private._get_values(number, ["7"]) == 7
    level = private._option_string_actions["--level"]
    with pytest.raises(argparse.ArgumentError):
        private._check_value(level, "medium")
    out = io.StringIO()
    private._print_message("hello", out)
    assert out.getvalue() == "hello"


def test_argparse_calls_what_the_parser_replaces(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser(prog="p")
    parser.add_argument("--level", choices=["low", "high"])
    for words, said in ((["--level", "hihg"], 'did you mean "high"?'), (["--levle", "low"], '"--level"')):
        with pytest.raises(SystemExit) as stop:
            parser.parse_args(words)
        assert stop.value.code == 2
        assert said in capsys.readouterr().err
    with pytest.raises(SystemExit):
        parser.parse_args(["--help"])
    assert "--log FORM" in capsys.readouterr().out


@pytest.mark.parametrize("command", cli.commands("run"))
def test_a_number_of_a_command_has_bounds(command: str) -> None:
    """`int` and `float` take what is none here: a count of -1, nan seconds, the port 99999.

    A seed may be any number; settings of a broker are checked together.
    """
    parser: Any = cli.parser(command)
    choices = next(action.choices for action in parser._actions if isinstance(action.choices, dict))
    found = {action.dest for action in choices[command]._actions if action.type in (int, float)}
    assert found - {"seed"} <= (set(settings(BrokerSettings)) if command == "broker" else set())


def test_a_word_behind_an_option_is_the_argument_that_may_be_missing() -> None:
    """Python 3.13 does so by itself."""
    parser = Parser(prog="p")
    parser.add_argument("command")
    parser.add_argument("file", nargs="?")
    parser.add_argument("--level")
    found = parser.parse_args(["run", "--level", "low", "a.yaml"])
    assert (found.command, found.file, found.level) == ("run", "a.yaml", "low")


def test_a_parser_knows_those_of_its_subcommands() -> None:
    parser = Parser(prog="p")
    assert parser.below() == {}
    run = parser.add_subparsers().add_parser("run")
    assert parser.below() == {"run": run}


def test_wrong_use_is_one_line_that_says_where_the_usage_is(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser(prog="p")
    parser.add_argument("file")
    with pytest.raises(SystemExit) as stop:
        parser.parse_args(["a", "b\x1b[2J"])
    assert stop.value.code == 2
    assert capsys.readouterr().err == "p: error: unrecognized arguments: b?[2J (usage: p --help)\n"


def test_data_without_its_option_is_told_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["send", "tcp://127.0.0.1:1", "fridge/temp", "9.5"])
    assert (
        "buscoupler send: error: unrecognized arguments: 9.5; did you mean --data 9.5?"
        in capsys.readouterr().err
    )


MAY_BE_EMPTY = {
    *("send --data", "send --hex", "explain --data", "client data", "client --subscribe"),
    *("service --function", "query query"),  # it says nothing; all producers
    *("explain pattern", "send pattern", "tokens given"),  # no tokens
    *("values --pattern", "recv --pattern", "traffic --pattern"),  # it is the beginning of all patterns
}


def test_an_empty_word_is_refused_but_where_it_has_a_meaning() -> None:
    """An unset variable of a shell must not stand for all gateways, the present directory or any address."""
    taken = {
        f"{name} {(action.option_strings or [action.dest])[-1]}"
        for name, parser in every_parser()
        for action in parser._actions
        if action.nargs not in (0, argparse.PARSER) and takes_empty(parser, action)
    }
    assert taken == MAY_BE_EMPTY


def every_parser() -> Iterator[tuple[str, Parser]]:
    for name, _, parser in cli.described():
        yield name, parser
        yield from ((f"{name} {word}", inner) for word, inner in cli.below(name, parser))


def takes_empty(parser: Any, action: argparse.Action) -> bool:
    try:
        parser._get_values(action, [""])
    except argparse.ArgumentError:
        return False
    return True


def test_an_empty_word_behind_an_option_is_refused_too(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["reload", "--gateway", "gw", ""], ["audit", "--json", ""], ["run", ""], ["broker", ""]):
        with pytest.raises(SystemExit, match="2"):
            cli.main(words)
        assert ": an empty word: write a value" in capsys.readouterr().err
