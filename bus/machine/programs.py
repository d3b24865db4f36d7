"""Programs that a topology names: whether they are there, and can be run."""

import os


def trouble(program: str) -> str:
    """Return why a program cannot be run, and what to do; "" if it can."""
    if not os.path.isfile(program):
        return f"{program} is not there: name the program by its full path"
    return "" if os.access(program, os.X_OK) else f"{program} cannot be run: chmod +x {program}"
