"""Uploads and loads to a server of S3's protocol on loopback."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("boto3")
pytest.importorskip("moto")

import pyarrow.parquet as pq

from capture import files
from capture.schema import META_VERSION
from capture.stores import store_of
from capture.tables import PlainTable, Table, load
from pipeline.input import sound
from pipeline.input.stored import listing
from tests.capture.divided import PARTS, planted
from tests.devices.upload.captures import GATEWAY, mine, rows
from tests.devices.upload.running import idle, run, text
from tests.helpers.s3 import client, environment, served

SECRETS = "[default]\naws_access_key_id = one\naws_secret_access_key = two\n"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with served() as port:
        yield port


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, port: int) -> Iterator[str]:
    """An empty bucket. The address of the server is in its URL, and credentials are in a file."""
    (tmp_path / "secrets").write_text(SECRETS)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "secrets"))
    client(port).create_bucket(Bucket="plant")
    yield f"s3://plant/captures?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
    for name in stored(port):
        client(port).delete_object(Bucket="plant", Key=name)


def port_of(url: str) -> int:
    return int(url.partition("&")[0].rpartition(":")[2])


def stored(port: int) -> list[str]:
    found = client(port).list_objects_v2(Bucket="plant").get("Contents", [])
    return [one["Key"] for one in found]


def brought(url: str, where: Path) -> Path:
    """Copy what the bucket has to this machine."""
    port = port_of(url)
    for name in stored(port):
        path = where / name
        path.parent.mkdir(parents=True, exist_ok=True)
        client(port).download_file("plant", name, str(path))
    return where / "captures"


async def test_an_upload_stores_each_row_once(s3: str, tmp_path: Path) -> None:
    root = planted(tmp_path)
    credentials = f", credentials: {tmp_path / 'secrets'}"
    await run(text(root, s3, credentials), lambda upload: upload.counts["files"] == PARTS)
    found = await asyncio.to_thread(brought, s3, tmp_path / "copy")
    assert rows(mine(found)) == rows(mine(root))
    again = await run(text(root, s3, credentials), lambda upload: upload.pid is not None)
    assert again.counts["files"] == 0


async def test_a_server_that_is_away_is_said(s3: str, tmp_path: Path) -> None:
    root = planted(tmp_path)
    away = s3.replace("plant/", "nobody/")

    upload = await run(text(root, away), lambda upload: upload.state == "waiting")
    assert "s3://nobody/captures" in upload.fault
    assert "endpoint_override" not in upload.fault
    assert not idle(upload)


@pytest.mark.parametrize("kind", ["plain", "delta"])
def test_a_table_there_is_loaded_once(s3: str, tmp_path: Path, kind: str, monkeypatch: Any) -> None:
    for name, value in environment(port_of(s3)).items():
        monkeypatch.setenv(name, value)
    days = files.days_directory(planted(tmp_path))
    assert sum(one.added for one in load(days, table_of(kind, s3))) == 4 * PARTS
    assert list(load(days, table_of(kind, s3))) == []
    found = brought(s3, tmp_path / "copy")
    assert rows(mine(found)) == rows(mine(days.parent))
    assert GATEWAY in {files.gateway_of(path) for path in files.listed(found)}


def test_a_job_refuses_a_file_of_a_later_version_there(s3: str, tmp_path: Path) -> None:
    root = planted(tmp_path)
    for path in files.listed(root):
        store_of(s3).put(path, "/".join(path.parts[-3:]))
    assert sound.version_by_url(s3, listing(s3)) == ""
    path = files.listed(root)[-1]
    table = pq.read_table(path)
    later = {**table.schema.metadata, META_VERSION.encode(): b"99"}
    pq.write_table(table.replace_schema_metadata(later), path)
    store_of(s3).put(path, "/".join(path.parts[-3:]))
    for url in (s3, s3.replace("s3://", "s3a://")):
        assert f"{path.name}: capture schema 99" in sound.version_by_url(url, listing(url))


def table_of(kind: str, url: str) -> Table:
    if kind == "plain":
        return PlainTable(store_of(url))
    pytest.importorskip("deltalake")
    from capture.delta import DeltaTable

    return DeltaTable(store_of(url), url.partition("?")[0])
