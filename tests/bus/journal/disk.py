"""A simulated disk, which at a power cut forgets what was not synced, and which can be full or fail."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from errno import EIO, ENOENT, ENOSPC
from random import Random


class Stopped(BaseException):
    """The end of the process in the middle of an operation."""


@dataclass(eq=False)
class Inode:
    """A file: what a process reads, what is on disk, and the changes between them (offset and data; data None
    for a cut at the offset)."""

    cache: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)


def change(content: bytearray, offset: int, data: bytes | None) -> None:
    """Make a change."""
    end = offset + len(data or b"")
    if len(content) < end or data is None:
        content.extend(bytes(max(0, end - len(content))))
    if data is None:
        del content[offset:]
    else:
        content[offset:end] = data


class Disk:
    """The disk; a `Files`. `steps` counts operations that change something; the process stops in the middle
    of number `stop_at`. `capacity` is in bytes. While `fails` names operations, these fail."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.names = dict[str, Inode]()
        self._durable_names = dict[str, Inode]()
        self._pending_names = list[tuple[str, str, Inode | None]]()
        self._open = dict[int, Inode]()
        self._locked = set[str]()
        self._locks = dict[int, str]()
        self._next = 3
        self.steps, self.stop_at = 0, -1
        self.capacity = 1 << 40
        self.fails = set[str]()
        self.bad_pages = set[tuple[int, int]]()

    # -- what happens to it

    def kill(self) -> None:
        """End the process: what it wrote is still there."""
        self._open.clear()
        self._locked.clear()
        self._locks.clear()

    def cut(self) -> None:
        """Cut the power: each change that was not synced is kept, lost or torn, by chance."""
        self.kill()
        for directory, name, inode in self._pending_names:
            if self._random.random() < 0.5:
                self._settle(self._durable_names, directory, name, inode)
        self._pending_names.clear()
        self.names = dict(self._durable_names)
        for inode in self.names.values():
            for offset, data in inode.pending:
                self._chance(inode.durable, offset, data)
            inode.pending.clear()
            inode.cache[:] = inode.durable

    def _settle(self, names: dict[str, Inode], old: str, new: str, inode: Inode | None) -> None:
        if old:
            names.pop(old, None)
        if new and inode:
            names[new] = inode

    def _chance(self, content: bytearray, offset: int, data: bytes | None) -> None:
        luck = self._random.random()
        if luck < 0.3:
            return
        if luck < 0.6 or data is None:
            change(content, offset, data)
            return
        page = self._random.choice((512, 4096))
        at = offset
        while at < offset + len(data):
            end = min(at + page - at % page, offset + len(data))
            if self._random.random() < 0.5:
                change(content, at, data[at - offset : end - offset])
            at = end

    def _step(self, name: str, partly: Callable[[], None] = lambda: None) -> None:
        self.steps += 1
        if self.steps == self.stop_at:
            partly()
            raise Stopped
        if name in self.fails:
            partly()
            raise OSError(EIO, os.strerror(EIO))

    def flip(self, path: str, at: int, bit: int = 0) -> None:
        """Flip a bit of a file."""
        for content in (self.names[path].cache, self.names[path].durable):
            content[at] ^= 1 << bit

    # -- files

    def make_directory(self, path: str) -> None:
        pass

    def listing(self, path: str) -> dict[str, int]:
        inside = {name: inode for name, inode in self.names.items() if os.path.dirname(name) == path}
        return {os.path.basename(name): len(inode.cache) for name, inode in inside.items()}

    def open(self, path: str, create: bool = False) -> int:
        if create:
            self._step("open")
            inode = self.names.get(path)
            if inode is None:
                inode = self.names[path] = Inode()
                self._pending_names.append(("", path, inode))
            elif inode.cache:
                self._change(inode, 0, None)
        if path not in self.names:
            raise FileNotFoundError(ENOENT, os.strerror(ENOENT), path)
        self._next += 1
        self._open[self._next] = self.names[path]
        return self._next

    def _change(self, inode: Inode, offset: int, data: bytes | None) -> None:
        change(inode.cache, offset, data)
        inode.pending.append((offset, data))

    def lock(self, path: str) -> int:
        if path in self._locked:
            raise BlockingIOError
        self._locked.add(path)
        self._next += 1
        self._locks[self._next] = path
        return self._next

    def pread(self, file: int, size_bytes: int, offset: int) -> bytes:
        inode = self._open[file]
        pages = range(offset // 4096, (offset + size_bytes - 1) // 4096 + 1)
        if self.bad_pages and any((id(inode), page) in self.bad_pages for page in pages):
            raise OSError(EIO, os.strerror(EIO))
        return bytes(inode.cache[offset : offset + size_bytes])

    def pwrite(self, file: int, data: bytes, offset: int) -> None:
        inode = self._open[file]
        half = data[: self._random.randrange(len(data) + 1)]
        self._step("pwrite", lambda: self._change(inode, offset, half))
        used = sum(len(one.cache) for one in self.names.values())
        free = self.capacity - used + max(0, len(inode.cache) - offset)
        if len(data) > free:
            self._change(inode, offset, data[: max(0, free)])
            raise OSError(ENOSPC, os.strerror(ENOSPC))
        self._change(inode, offset, data)

    def truncate(self, file: int, size_bytes: int) -> None:
        self._step("truncate")
        self._change(self._open[file], size_bytes, None)

    def sync(self, file: int) -> None:
        inode = self._open[file]

        def forget() -> None:
            for offset, data in inode.pending:
                self._chance(inode.durable, offset, data)
            if "sync" in self.fails:
                inode.pending.clear()  # the kernel takes the pages for clean

        self._step("sync", forget)
        for offset, data in inode.pending:
            change(inode.durable, offset, data)
        inode.pending.clear()

    def close(self, file: int) -> None:
        self._open.pop(file, None)
        if path := self._locks.pop(file, None):
            self._locked.discard(path)

    def is_at(self, file: int, path: str) -> bool:
        return file in self._locks or self.names.get(path) is self._open[file]

    def rename(self, old: str, new: str) -> None:
        self._step("rename")
        inode = self.names.pop(old)
        self.names[new] = inode
        self._pending_names.append((old, new, inode))

    def unlink(self, path: str) -> None:
        self._step("unlink")
        if self.names.pop(path, None) is not None:
            self._pending_names.append((path, "", None))

    def sync_directory(self, path: str) -> None:
        self._step("sync_directory")
        for change_of_names in self._pending_names:
            self._settle(self._durable_names, *change_of_names)
        self._pending_names.clear()
