<<<<<<< HEAD
"""The scripts for shells, from a small table of commands: which words come where."""
=======
"""The scripts of shells, word for word, for a program with two small commands."""
>>>>>>> main

import argparse

import pytest

<<<<<<< HEAD
from appliance.completion import SHELLS, Command, Option, bash, commands, fish, zsh
=======
from appliance.completion import Command, Option, bash, commands, fish, zsh
>>>>>>> main


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(add_help=False)
<<<<<<< HEAD
    made.add_argument("-v", "--verbose", action="store_true", help="say more")
    made.add_argument("--log", choices=["text", "json"], help="form of the log")
    made.add_argument("--file", help="a file [of yours]: any")
    made.add_argument("--level", type=int, choices=[1, 2])
    made.add_argument("--secret", help=argparse.SUPPRESS)
    made.add_argument("verb", choices=["start", "stop"], help="what to do")
    made.add_argument("name", help="of what")
    return made


RUN = Command(
    "run",
    "run it",
    (
        Option(("-v", "--verbose"), "say more", None),
        Option(("--log",), "form of the log", ("text", "json")),
        Option(("--file",), "a file [of yours]: any", ()),
        Option(("--level",), "", ("1", "2")),
    ),
    ("start", "stop"),
)
SHOW = Command("show", "gateway's picture", (), ())


def test_commands_have_their_options_with_choices_and_the_words_that_follow() -> None:
    bare = argparse.ArgumentParser(add_help=False)
    assert commands([("run", "run it", parser()), ("show", "gateway's picture", bare)]) == [RUN, SHOW]
=======
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
>>>>>>> main


@pytest.mark.parametrize(
    "line",
    [
<<<<<<< HEAD
        '    run) words="-v --verbose --log --file --level start stop" ;;',
        '    show) words="" ;;',
        '    run:--log) words="text json" ;;',
        '    run:--level) words="1 2" ;;',
        '    "") words="run show --help --version --verbose --log" ;;',
        '    case "$word" in -*|text|json) ;; *) command="$word"; break ;; esac',
    ],
)
def test_bash_completes_commands_options_and_values(line: str) -> None:
    assert line in bash([RUN, SHOW]).splitlines()


def test_bash_completes_no_values_of_options_without_choices() -> None:
    assert "run:--file" not in bash([RUN])
    assert "run:-v" not in bash([RUN])


def test_bash_knows_commands_without_a_form_of_the_log() -> None:
    assert '    case "$word" in -*|) ;;' in bash([SHOW, RUN])


@pytest.mark.parametrize(
    "line",
    [
        "    'run:run it'",
        "    'show:gateway’s picture'",
        "    run) _arguments '-v[say more]' '--verbose[say more]' '--log[form of the log]:value:(text json)' "
        "'--file[a file (of yours) - any]:value:_files' '--level[]:value:(1 2)' '*:word:(start stop)' ;;",
        "    show) _arguments '*:file:_files' ;;",
    ],
)
def test_zsh_completes_files_where_there_are_no_choices(line: str) -> None:
    assert line in zsh([RUN, SHOW]).splitlines()


def test_fish_has_a_line_for_each_command_its_words_and_each_option() -> None:
    there = "complete -c buscoupler -n '__fish_seen_subcommand_from run'"
    first = "complete -c buscoupler -f -n __fish_use_subcommand"
    assert fish([RUN, SHOW]).splitlines()[1:] == [
        f"{first} -a run -d 'run it'",
        f"{there} -f -a 'start stop'",
        f"{there} -s v -l verbose -d 'say more'",
        f"{there} -l log -x -a 'text json' -d 'form of the log'",
        f"{there} -l file -r -d 'a file [of yours]: any'",
        f"{there} -l level -x -a '1 2' -d ''",
        f"{first} -a show -d 'gateway’s picture'",
    ]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_ends_with_one_newline(shell: str) -> None:
    script = SHELLS[shell]([RUN])
    assert script.endswith("\n")
    assert not script.endswith("\n\n")
=======
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
>>>>>>> main
