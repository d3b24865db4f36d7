"""The file of a catalog's records, without a catalog."""

import asyncio
from pathlib import Path

from devices.dbp.catalog.records import HEAD, Owner, Records
from tests.helpers.peers import until


async def test_records_that_are_opened_again_are_kept_again(tmp_path: Path) -> None:
    """The timer of the last time, which had been cancelled, stood for one that would write."""
    file, said = tmp_path / "records", list[bytes]()
    records = Records(file, "catalog", 1 << 20)
    owner = Owner(lambda: said, lambda _: None, lambda _: None)
    for word in (b"first", b"second"):
        records.open(asyncio.get_running_loop(), owner)
        said.append(word)
        records.keep()
        await until(lambda: file.exists() and file.read_bytes() == HEAD + b"\n".join([*said, b""]))
        records.keep()
        records.close()  # with a timer that runs
