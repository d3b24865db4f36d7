"""The settings in the URL of an object store, for libraries that take them apart from it: Sail and deltalake.

pyarrow takes them with the URL: `s3://BUCKET/PREFIX?endpoint_override=HOST:PORT&scheme=http&region=NAME`. The
others know the variables of the environment. They refuse a server without TLS unless one more variable allows
it, which nobody need set whose URL says `http`.
"""

import os
from typing import Final
from urllib.parse import parse_qsl

_ENDPOINT: Final = "AWS_ENDPOINT_URL"
_PLAIN: Final = {"AWS_ALLOW_HTTP": "true"}


def bare(url: str) -> str:
    """Return a URL without its settings, by the name that the libraries know: `s3://`."""
    return url.partition("?")[0].replace("s3a://", "s3://", 1)


def settings(url: str) -> dict[str, str]:
    """Return the variables for the store of a URL: those that the URL says, and leave to use HTTP if the
    server's address begins with `http://`."""
    said, address = _said(url), _endpoint(url)
    found = {_ENDPOINT: address} if address else {}
    if said.get("region"):
        found["AWS_REGION"] = said["region"]
    is_plain = endpoint(url).startswith("http://") or said.get("scheme") == "http"
    return found | (_PLAIN if is_plain else {})


def endpoint(url: str) -> str:
    """Return the address of the server that a URL, or the environment, names; "" for Amazon's."""
    return _endpoint(url) or os.environ.get(_ENDPOINT, "")


def _endpoint(url: str) -> str:
    said = _said(url)
    host, scheme = said.get("endpoint_override", ""), said.get("scheme", "https")
    return host if not host or "://" in host else f"{scheme}://{host}"


def _said(url: str) -> dict[str, str]:
    return dict(parse_qsl(url.partition("?")[2]))
