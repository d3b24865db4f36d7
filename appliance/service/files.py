"""The files of a service on this machine, or below the root of an image, and what is another's there."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from appliance.service.plan import NAME, Plan
from appliance.service.texts import MARK, paths_of
from bus.errors import TopologyError
from bus.machine.partial import replacing

_UNITS: Final = ("usr/lib/systemd/system", "usr/local/lib/systemd/system", "lib/systemd/system")
"""Where packages have their units. One in /etc takes the place of such a unit."""


def put(files: Mapping[str, str], name: str, root: Path) -> list[str]:
    """Write the files that differ, and remove those of an earlier plan. Return a line for each file.

    Raises `TopologyError`, with nothing changed, if a file there was not written by us; and `OSError`.
    """
    _check_ours(name, root)
    lines = [f"removed {path}" for path in paths_of(name) if path not in files and _remove(root, path)]
    for path, text in files.items():
        lines.append(f"{'wrote' if _write(_below(root, path), text) else 'unchanged'} {path}")
    return lines


def check_free(plan: Plan, root: Path) -> None:
    """Raise `TopologyError` if a service would take what is another's on this machine, or in an image: its
    unit, its user or group, or a directory whose owner or mode would change."""
    name = plan.name
    if any(map(_is_ours, _paths(name, root))):
        return
    if whose := _unit_of(name, root) or ("" if name == NAME else _taken(plan, root)):
        raise TopologyError(f'"{name}" is no name for a service here: {whose}: give it another --name')


def _unit_of(name: str, root: Path) -> str:
    """Return in words that a package has a unit of this name; "" if none has."""
    units = (f"/{place}/{name}.service" for place in _UNITS)
    return next((f"{unit} is another's" for unit in units if os.path.lexists(_below(root, unit))), "")


def _taken(plan: Plan, root: Path) -> str:
    """Return in words what is there and was not made for a service of this name; "" if nothing is."""
    state, settings = f"/var/lib/{plan.name}", f"/etc/{plan.name}"
    home = _home_of(plan.name, root)
    if home == state:
        return ""
    if home is not None:
        return f"the user {plan.name} is another's"
    if _lines_of("/etc/group", plan.name, root):
        return f"the group {plan.name} is another's"
    if os.path.lexists(_below(root, state)):
        return f"{state} is another's"
    is_used = any(path.startswith(f"{settings}/") for path in plan.read)
    return f"{settings} is another's" if os.path.lexists(_below(root, settings)) and not is_used else ""


def _home_of(name: str, root: Path) -> str | None:
    """Return the home of a user, None if there is no such user."""
    return next((words[5] for words in _lines_of("/etc/passwd", name, root) if len(words) > 5), None)


def _lines_of(path: str, name: str, root: Path) -> list[list[str]]:
    """Return the words of the lines about a name in a file such as /etc/passwd; none if it cannot be read."""
    try:
        lines = _below(root, path).read_text(errors="replace").splitlines()
    except OSError:
        return []
    return [words for words in (line.split(":") for line in lines) if words[0] == name]


def take_back(name: str, root: Path) -> list[str]:
    """Remove the files of a service, and the links that enable it. Return a line for each.

    Raises `TopologyError`, with nothing changed, if a file there was not written by us; and `OSError`.
    """
    _check_ours(name, root)
    lines = [f"removed {path}" for path in paths_of(name) if _remove(root, path)]
    wanted = f"/etc/systemd/system/multi-user.target.wants/{name}.service"
    return lines + ([f"removed {wanted}"] if lines and _remove(root, wanted) else [])


def _below(root: Path, path: str) -> Path:
    return root / path.removeprefix("/")


def _paths(name: str, root: Path) -> list[Path]:
    return [_below(root, path) for path in paths_of(name)]


def _is_ours(path: Path) -> bool:
    return path.exists() and path.read_text(errors="replace").startswith(MARK)


def _check_ours(name: str, root: Path) -> None:
    for path in _paths(name, root):
        if path.exists() and not _is_ours(path):
            text = f"{path} was not written by `buscoupler install`"
            raise TopologyError(f"{text}: move it away, or give the service another --name")


def _write(path: Path, text: str) -> bool:
    if path.exists() and path.read_text() == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    with replacing(path) as aside:
        aside.write_text(text)
        aside.chmod(0o644)
    return True


def _remove(root: Path, path: str) -> bool:
    found = _below(root, path)
    if not found.is_symlink() and not found.exists():
        return False
    found.unlink()
    return True
