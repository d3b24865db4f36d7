"""Where an upload may go, and what is refused."""

import pytest

from devices.upload.device import UploadSpec, check_target
from tests.topologies.support import said

HEAD = "name: t\ngateways: {gw: }\ndevices: {u: {on: gw, upload: /r/capture, to: '%s'}}\n"


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("gs://b/c", '"gs://" is not known here'),
        ("://b", '"://" is not known here'),
        ("s3://key:secret@b/c", "credentials in an address end in logs"),
        ("s3://", "names no place"),
        ("s3:///", "names no place"),
        ("s3://?region=x", "names no place"),
        ("", "names no place"),
    ],
)
def test_a_target_that_cannot_be_is_refused(to: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_target(to)
    assert words in said(HEAD % to) or not to


@pytest.mark.parametrize("to", ["s3://b", "s3://b/p?endpoint=me@h", "/mnt", "me@h", "mnt?x"])
def test_a_target_that_can_be_is_not(to: str) -> None:
    check_target(to)
    UploadSpec(on="gw", upload="/r/capture", to=to)


@pytest.mark.parametrize("to", ["/r/capture", "/r/capture/x", "/r/x/../capture"])
def test_an_upload_into_the_directory_that_it_reads_is_refused(to: str) -> None:
    with pytest.raises(ValueError, match="to is within the directory that is uploaded"):
        UploadSpec(on="gw", upload="/r/capture", to=to)
    UploadSpec(on="gw", upload="/r/capture", to="/r/captures")


def test_credentials_are_for_addresses() -> None:
    with pytest.raises(ValueError, match="credentials are for s3://"):
        UploadSpec(on="gw", upload="/r", to="/d", credentials="/c")
    UploadSpec(on="gw", upload="/r", to="s3://b", credentials="/c")
