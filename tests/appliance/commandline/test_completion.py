"""The scripts of shells, word for word, for a program with two small commands."""

import argparse

import pytest

from appliance.commandline.completion import Command, Option, bash, commands, fish, zsh


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(add_help=False)
    made.add_argument("action", choices=["new", "name"])
    made.add_argument("file")
    made.add_argument("-v", "--verbose", action="store_true", help="log [all] events: a line each")
    made.add_argument("--log", choices=["text", "json"], help="form")
    made.add_argument("--level", type=int, choices=[1, 2])
    made.add_argument("--output", help="where the user's file goes")
    made.add_argument("--inside", help=argparse.SUPPRESS)
    return made


def plain() -> argparse.ArgumentParser:
    return argparse.ArgumentParser(add_help=False)


KEY = Command(
    "key",
    "make a key",
    (
        Option(("-v", "--verbose"), "log [all] events: a line each", None),
        Option(("--log",), "form", ("text", "json")),
        Option(("--level",), "", ("1", "2")),
        Option(("--output",), "where the user's file goes", ()),
    ),
    ("new", "name"),
)
FOUND = [KEY, Command("top", "show what runs", (), ())]


def test_commands_are_what_their_parsers_read_without_what_is_hidden() -> None:
    assert commands([("key", "make a key", parser()), ("top", "show what runs", plain())]) == FOUND


def test_bash_offers_commands_then_words_then_the_values_of_an_option() -> None:
    lines = bash(FOUND).splitlines()
    assert '    "") words="key top --help --version --verbose --log" ;;' in lines
    assert '    key) words="-v --verbose --log --level --output new name" ;;' in lines
    assert '    top) words="" ;;' in lines
    values = [line for line in lines if line.startswith("    key:")]
    assert values == ['    key:--log) words="text json" ;;', '    key:--level) words="1 2" ;;']
    assert '    case "$word" in -*|text|json) ;; *) command="$word"; break ;; esac' in lines


def test_zsh_gets_the_arguments_of_each_command() -> None:
    lines = zsh(FOUND).splitlines()
    assert "    'key:make a key'" in lines
    start = "'-v[log (all) events - a line each]' '--verbose[log (all) events - a line each]'"
    middle = "'--log[form]:value:(text json)' '--level[]:value:(1 2)'"
    end = "'--output[where the user’s file goes]:value:_files' '*:word:(new name)'"
    assert f"    key) _arguments {start} {middle} {end} ;;" in lines
    assert "    top) _arguments '*:file:_files' ;;" in lines


@pytest.mark.parametrize(
    "line",
    [
        "complete -c buscoupler -f -n __fish_use_subcommand -a top -d 'show what runs'",
        "complete -c buscoupler -n '__fish_seen_subcommand_from key' -f -a 'new name'",
        "complete -c buscoupler -n '__fish_seen_subcommand_from key' "
        "-s v -l verbose -d 'log [all] events: a line each'",
        "complete -c buscoupler -n '__fish_seen_subcommand_from key' -l log -x -a 'text json' -d 'form'",
        "complete -c buscoupler -n '__fish_seen_subcommand_from key' -l output -r "
        "-d 'where the user’s file goes'",
    ],
)
def test_fish_gets_a_line_for_each_command_its_words_and_its_options(line: str) -> None:
    text = fish(FOUND)
    assert line in text.splitlines()
    assert len(text.splitlines()) == 1 + 2 + 1 + 4
    assert text.endswith("\n")
