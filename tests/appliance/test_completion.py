"""The scripts for shells, from a small table of commands: which words come where."""

import argparse

import pytest

from appliance.completion import SHELLS, Command, Option, bash, commands, fish, zsh


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(add_help=False)
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


@pytest.mark.parametrize(
    "line",
    [
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
