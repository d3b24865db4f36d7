"""Scripts that complete the command line in shells, generated from its parsers. Pure, but for the imports."""

import argparse
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple


class Option(NamedTuple):
    """An option of a command by all `names`. `takes` has the choices of its value, None for a switch."""

    names: tuple[str, ...]
    help: str
    takes: tuple[str, ...] | None


class Command(NamedTuple):
    """A command with its options; `words` are the choices of its arguments, such as subcommands."""

    name: str
    help: str
    options: tuple[Option, ...]
    words: tuple[str, ...]


Described = Iterable[tuple[str, str, argparse.ArgumentParser]]
"""All commands, with the help and the parser of each."""


def commands(described: Described) -> list[Command]:
    """Return a record of each command, read from its parser."""
    return [_command(*one) for one in described]


def _command(name: str, text: str, parser: argparse.ArgumentParser) -> Command:
    options, words = list[Option](), list[str]()
    for action in parser._actions:  # noqa: SLF001
        if action.help == argparse.SUPPRESS:
            continue
        choices = tuple(map(str, action.choices)) if action.choices is not None else ()
        if not action.option_strings:
            words += choices
            continue
        takes = None if action.nargs == 0 else choices
        options.append(Option(tuple(action.option_strings), action.help or "", takes))
    return Command(name, text, tuple(options), tuple(words))


def bash(found: list[Command]) -> str:
    """Return the completion script for bash."""
    cases = "\n".join(f'    {one.name}) words="{" ".join(_words(one))}" ;;' for one in found)
    values = "\n".join(
        f'    {one.name}:{name}) words="{" ".join(option.takes)}" ;;'
        for one in found for option in one.options if option.takes for name in option.names
    )  # fmt: skip
    return f"""# bash completion of buscoupler: eval "$(buscoupler completion bash)"
_buscoupler() {{
  local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}" command="" words="" word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$word" in -*|{"|".join(_forms(found))}) ;; *) command="$word"; break ;; esac
  done
  case "$command" in
    "") words="{" ".join(one.name for one in found)} --help --version --verbose --log" ;;
{cases}
  esac
  case "$command:$prev" in
{values}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _buscoupler buscoupler
"""


def _forms(found: list[Command]) -> list[str]:
    """Return the values of `--log`, which may stand before the command."""
    return [form for option in found[0].options if "--log" in option.names for form in option.takes or ()]


def _words(one: Command) -> Iterator[str]:
    yield from (name for option in one.options for name in option.names)
    yield from one.words


def zsh(found: list[Command]) -> str:
    """Return the completion script for zsh."""
    named = "\n".join(f"    {_quoted(f'{one.name}:{one.help}')}" for one in found)
    cases = "\n".join(f"    {one.name}) _arguments {' '.join(_zsh_arguments(one))} ;;" for one in found)
    return f"""#compdef buscoupler
# zsh completion: buscoupler completion zsh > a directory of $fpath, as _buscoupler
_buscoupler() {{
  local -a commands
  commands=(
{named}
  )
  if (( CURRENT == 2 )); then _describe command commands; return; fi
  shift words; (( CURRENT-- ))
  case $words[1] in
{cases}
  esac
}}
if [ "$funcstack[1]" = "_buscoupler" ]; then _buscoupler; else compdef _buscoupler buscoupler; fi
"""


def _zsh_arguments(one: Command) -> Iterator[str]:
    for option in one.options:
        text = option.help.replace("[", "(").replace("]", ")").replace(":", " -")
        values = (
            ""
            if option.takes is None
            else f":value:({' '.join(option.takes)})"
            if option.takes
            else ":value:_files"
        )
        yield from (_quoted(f"{name}[{text}]{values}") for name in option.names)
    yield _quoted(f"*:word:({' '.join(one.words)})" if one.words else "*:file:_files")


def fish(found: list[Command]) -> str:
    """Return the completion script for fish."""
    lines = ["# fish completion: buscoupler completion fish > ~/.config/fish/completions/buscoupler.fish"]
    for one in found:
        first = "complete -c buscoupler -f -n __fish_use_subcommand"
        lines.append(f"{first} -a {one.name} -d {_quoted(one.help)}")
        there = f"complete -c buscoupler -n '__fish_seen_subcommand_from {one.name}'"
        lines += [f"{there} -f -a {_quoted(' '.join(one.words))}"] if one.words else []
        lines += [f"{there} {_fish_option(option)}" for option in one.options]
    return "\n".join([*lines, ""])


def _fish_option(option: Option) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
    values = (
        f" -x -a {_quoted(' '.join(option.takes))}" if option.takes else " -r" if option.takes == () else ""
    )
    return f"{names}{values} -d {_quoted(option.help)}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "’").replace("\\", "") + "'"


SHELLS: dict[str, Callable[[list[Command]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
