"""What a URL of an object store says to libraries that take it from the environment."""

import pytest

from capture import by_url

_HTTP = {"AWS_ALLOW_HTTP": "true"}


@pytest.mark.parametrize(
    ("url", "environment", "found"),
    [
        ("s3://b/p", "", {}),
        ("s3://b/p", "https://store:9000", {}),
        ("s3://b/p", "http://store:9000", _HTTP),
        ("s3a://b/p?scheme=http", "", _HTTP),
        (
            "s3://b/p?endpoint_override=h:9&scheme=http&region=eu",
            "https://other",
            {"AWS_ENDPOINT_URL": "http://h:9", "AWS_REGION": "eu", **_HTTP},
        ),
        ("s3://b/p?endpoint_override=h:9", "http://other", {"AWS_ENDPOINT_URL": "https://h:9"}),
        ("s3://b/p?endpoint_override=http%3A//h:9", "", {"AWS_ENDPOINT_URL": "http://h:9", **_HTTP}),
    ],
)
def test_plain_http_is_allowed_where_the_user_has_said_it(
    monkeypatch: pytest.MonkeyPatch, url: str, environment: str, found: dict[str, str]
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", environment)
    assert by_url.settings(url) == found
    assert by_url.bare(url) == "s3://b/p"
