"""The bounds of a broker are those of docs/wire/syndication.md."""

from dataclasses import fields, replace

import pytest

from devices.syndication.bounds import Bounds
from tests.helpers import ROOT

PAGE = (ROOT / "docs/wire/syndication.md").read_text()
B = Bounds()


@pytest.mark.parametrize(
    "row",
    [
        f"| a message | {B.object_bytes >> 10} KiB |",
        f"| containers within each other in a message | {B.depth} |",
        f"| items of all containers of a message | {B.items:,};",
        f"| {B.metadata_keys} keys, {B.metadata_bytes} bytes, {B.metadata_elements} elements of lists |",
        f"with those remembered; their metadata | {B.producers}; {B.all_metadata_bytes >> 20} MiB |",
        f"from one host | {B.speakers}, {B.speakers_per_client}, {B.speakers_per_host} |",
        f"queries | {B.queries}, {B.queries_per_host}; {B.all_query_bytes >> 20} MiB |",
        f"queries on one key | {B.instructions:,} |",
        f"| {B.change_cost:,}: 6 to 17 ms |",
        f"to all selections | {B.change_values:,} |",
        f"each 100 bytes | {B.members:,} |",
        f"subscribes | {B.selection_bytes >> 10} KiB |",
    ],
)
def test_the_page_has_the_bound(row: str) -> None:
    assert row in PAGE


def test_sizes_are_whole_kib_and_mib() -> None:
    assert [B.object_bytes % 1024, B.selection_bytes % 1024] == [0, 0]
    assert [B.all_metadata_bytes % 2**20, B.all_query_bytes % 2**20] == [0, 0]


def test_what_a_gone_producer_said_is_kept_for_seven_days() -> None:
    assert (B.kept_s, B.id_bytes) == (7 * 24 * 3600, 200)


@pytest.mark.parametrize("name", [field.name for field in fields(Bounds)])
def test_every_bound_is_above_zero(name: str) -> None:
    with pytest.raises(ValueError, match="above 0"):
        replace(B, **{name: 0})
    assert replace(B, **{name: 1})
