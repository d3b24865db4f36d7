"""The completion scripts, in real shells where they are installed."""

import shutil
import subprocess
from functools import cache

import pytest

from appliance.commandline import cli, completion
from appliance.commands.completion import SHELLS


@cache
def found() -> list[completion.Command]:
    """Return all commands, for which every parser is made: not where the module is only collected."""
    return completion.commands(cli.described())


def test_every_shell_that_is_offered_has_a_script() -> None:
    assert tuple(completion.SHELLS) == SHELLS


def completed(*words: str) -> set[str]:
    """Return what bash offers for the last of `words`."""
    ask = f"COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}; _buscoupler"
    script = f'{completion.bash(found())}\n{ask}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("buscoupler", "re"), {"recv", "reload", "report"}),
        (("buscoupler", "run", "--te"), {"--test"}),
        (("buscoupler", "--log", "json", "run", "--gate"), {"--gateway"}),
        (("buscoupler", "show", "x", "--format", "m"), {"mermaid"}),
        (("buscoupler", "completion", "z"), {"zsh"}),
        (("buscoupler", "run", "plant"), set()),  # then bash offers files
    ],
)
def test_bash_offers_commands_options_and_choices(words: tuple[str, ...], offered: set[str]) -> None:
    assert completed(*words) >= offered
    assert bool(completed(*words)) == bool(offered)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_reads_its_script(shell: str) -> None:
    text = completion.SHELLS[shell](found())
    assert all(name in text for name in cli.commands())
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([program, "-n", "/dev/stdin"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
