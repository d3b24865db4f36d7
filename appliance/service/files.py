"""The files of a service on this machine, or below the root of an image."""

from collections.abc import Mapping
from pathlib import Path

from appliance.service.texts import MARK, paths_of
from bus.errors import TopologyError


def put(files: Mapping[str, str], name: str, root: Path) -> list[str]:
    """Write the files that differ, and remove those of an earlier plan. Return a line for each file.

    Raises `TopologyError`, with nothing changed, if a file there was not written by us; and `OSError`.
    """
    _check_ours(name, root)
    lines = [f"removed {path}" for path in paths_of(name) if path not in files and _remove(root, path)]
    for path, text in files.items():
        lines.append(f"{'wrote' if _write(_below(root, path), text) else 'unchanged'} {path}")
    return lines


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


def _check_ours(name: str, root: Path) -> None:
    for path in (_below(root, path) for path in paths_of(name)):
        if path.exists() and not path.read_text(errors="replace").startswith(MARK):
            text = f"{path} was not written by `buscoupler install`"
            raise TopologyError(f"{text}: move it away, or give the service another --name")


def _write(path: Path, text: str) -> bool:
    if path.exists() and path.read_text() == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    aside = path.with_name(f".{path.name}.new")
    aside.write_text(text)
    aside.chmod(0o644)
    aside.replace(path)
    return True


def _remove(root: Path, path: str) -> bool:
    found = _below(root, path)
    if not found.is_symlink() and not found.exists():
        return False
    found.unlink()
    return True
