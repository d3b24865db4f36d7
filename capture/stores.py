"""The place of a table's files: a directory of this machine, or an object store by URL (`s3://BUCKET/PREFIX`).

A file appears under its name whole, or not at all. Names are relative, with `/`. Needs pyarrow.
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa
from pyarrow import fs

from bus.machine.partial import replacing
from capture import parquet
from capture.files import CaptureError

_SAID_MOST: Final = 300  # the address of a server stands at the end of what Amazon's library says


class Store(Protocol):
    """A place for files. Every method raises `CaptureError`."""

    def sizes(self, directory: str) -> dict[str, int]:
        """Return the names of the files in a directory, without it, and their sizes in bytes."""

    def folders(self, directory: str = "") -> list[str]:
        """Return the names of the directories in a directory, in order."""

    def below(self, directory: str = "") -> dict[str, int]:
        """Return the names of all files below a directory, in order, and their sizes in bytes."""

    def put(self, path: Path, name: str) -> None:
        """Store a copy of a file of this machine as `name`, in place of one that has the name."""

    def delete(self, name: str) -> None:
        """Delete a file, if it is there."""

    def opened(self, name: str) -> AbstractContextManager[pa.NativeFile]:
        """Open a file: only what is asked of it is read."""


def store_of(url: str) -> Store:
    """Make the store of a path or a URL. Raises `CaptureError`."""
    if "://" not in url:
        return Directory(Path(url))
    with said(url):
        system, prefix = fs.FileSystem.from_uri(url.replace("s3a://", "s3://", 1))  # Spark's name for it
        return Bucket(system, prefix, url)


class Directory:
    """A directory of this machine, which is made when it is first needed."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def sizes(self, directory: str) -> dict[str, int]:
        with said(self.root):
            found = (self.root / directory).iterdir() if (self.root / directory).is_dir() else ()
            return {path.name: path.stat().st_size for path in found if path.name[0] != "."}

    def folders(self, directory: str = "") -> list[str]:
        with said(self.root):
            found = [path for path in (self.root / directory).glob("*") if path.is_dir()]
        return sorted(path.relative_to(self.root).as_posix() for path in found)

    def below(self, directory: str = "") -> dict[str, int]:
        with said(self.root):
            found = sorted(path for path in (self.root / directory).rglob("*") if path.is_file())
            return {path.relative_to(self.root).as_posix(): path.stat().st_size for path in found}

    def put(self, path: Path, name: str) -> None:
        target = self.root / name
        with said(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target) as partial, path.open("rb") as source, partial.open("wb") as file:
                while piece := source.read(1 << 20):
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            parquet.sync(target.parent)

    def delete(self, name: str) -> None:
        with said(self.root / name):
            (self.root / name).unlink(missing_ok=True)

    @contextmanager
    def opened(self, name: str) -> Iterator[pa.NativeFile]:
        with said(self.root / name), pa.OSFile(str(self.root / name)) as file:
            yield file


class Bucket:
    """An object store, with the credentials that its environment or its user's files have."""

    def __init__(self, system: fs.FileSystem, prefix: str, url: str) -> None:
        self._system, self._prefix, self._url = system, prefix.rstrip("/"), url.partition("?")[0].rstrip("/")

    def sizes(self, directory: str) -> dict[str, int]:
        return {one.base_name: one.size for one in self._infos(directory) if one.is_file}

    def folders(self, directory: str = "") -> list[str]:
        found = [one for one in self._infos(directory) if one.type == fs.FileType.Directory]
        return sorted(map(self._name, found))

    def below(self, directory: str = "") -> dict[str, int]:
        found = {self._name(one): one.size for one in self._infos(directory, recursive=True) if one.is_file}
        return dict(sorted(found.items()))

    def _infos(self, directory: str, recursive: bool = False) -> list[fs.FileInfo]:
        place = f"{self._prefix}/{directory}".rstrip("/")
        where = fs.FileSelector(place, allow_not_found=True, recursive=recursive)
        with said(self._url):
            return list(self._system.get_file_info(where))

    def _name(self, info: fs.FileInfo) -> str:
        return str(info.path.removeprefix(f"{self._prefix}/"))

    def put(self, path: Path, name: str) -> None:
        # In one call: a stream that is closed early would store the half of it as a whole.
        with said(f"{self._url}/{name}"):
            whole = pa.memory_map(str(path)).read_buffer() if path.stat().st_size else b""
            with self._system.open_output_stream(f"{self._prefix}/{name}") as stream:
                stream.write(whole)

    def delete(self, name: str) -> None:
        with said(f"{self._url}/{name}"), suppress(FileNotFoundError):
            self._system.delete_file(f"{self._prefix}/{name}")

    @contextmanager
    def opened(self, name: str) -> Iterator[pa.NativeFile]:
        with said(f"{self._url}/{name}"), self._system.open_input_file(f"{self._prefix}/{name}") as file:
            yield file


@contextmanager
def said(place: object, *more: type[Exception]) -> Iterator[None]:
    """Turn what the system or Arrow raises, and `more`, into one line with the place."""
    try:
        yield
    except (OSError, pa.ArrowException, *more) as error:
        words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CaptureError(f"{place}: {words.splitlines()[0][:_SAID_MOST]}") from error
