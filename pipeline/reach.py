"""Addresses of servers that a job needs, tried before an engine starts and where a job fails: clients of
Spark's and Hadoop's go on trying for minutes, and then do not name what is dead."""

import os
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from bus.machine.addresses import dialled
from capture import by_url
from pipeline.errors import PipelineError

CONNECT_PORT: Final = 15002  # where a URL names none
_PORTS: Final = {"sc": CONNECT_PORT, "spark": 7077, "http": 80, "https": 443, "hdfs": 0}
"""The ports of schemes; others are left to who knows them. `hdfs://NAME` without a port may stand for several
hosts."""
_REACH_S: Final = 5.0
_STORES: Final = ("s3", "s3a")
_PROXIES: Final = ("http_proxy", "https_proxy", "all_proxy")
_NO_NETWORK: Final = "NETWORK_CONNECTION"
"""The word of Amazon's library for a server that it did not find, or that did not answer."""


def check(url: str) -> None:
    """Raise `PipelineError`, with the address, if nobody listens at any host of a URL, or of the server that
    the settings of an object store name; or if it names no bucket of one."""
    address = urlsplit(url)
    if address.scheme in _STORES:
        if not address.netloc:
            raise PipelineError(f"{url}: no bucket in it: give s3://BUCKET/PREFIX")
        server = by_url.endpoint(url)
        if server:
            _check(server, f"{by_url.bare(url)}: {server}")
        return
    _check(url.removeprefix("k8s://"), url)


def doubt(url: str) -> str:
    """Say in a line, with the address, why nobody answers at a URL; "" if somebody does."""
    try:
        check(url)
    except PipelineError as error:
        return str(error)
    return ""


def _check(url: str, named: str) -> None:
    reasons = list[str]()
    for host, port in _hosts(url):
        try:
            dialled(host, port, _REACH_S).close()
        except OSError as error:
            reasons.append((error.strerror or str(error)).lower())
        else:
            return
    if reasons:
        raise PipelineError(f"{named}: {reasons[-1]}")


def _hosts(url: str) -> Iterator[tuple[str, int]]:
    """Yield the hosts and ports of a URL, of which `spark://A:1,B:2` has several."""
    scheme, _, rest = url.partition("://")
    if scheme not in _PORTS:
        return
    for one in rest.partition("/")[0].partition(";")[0].split(","):
        address = urlsplit(f"//{one}")
        try:
            port = address.port or _PORTS[scheme]
        except ValueError:
            continue
        if address.hostname and port:
            yield address.hostname, port


def check_place(directory: str) -> None:
    """Check a directory by URL, unless a server that is asked by `SPARK_REMOTE` reads it."""
    if "://" in directory and not os.environ.get("SPARK_REMOTE"):
        check(directory)


def is_cut_off(doubt: str, conf: Mapping[str, str]) -> bool:
    """Return whether no engine of this machine will reach an object store either, by what our own look at it
    said: it knows no proxy, of which the environment or settings of the engine (`conf`) may tell others."""
    known = any(name.lower() in _PROXIES for name in os.environ)
    has_proxy = known or any("proxy" in f"{name} {value}".lower() for name, value in conf.items())
    return _NO_NETWORK in doubt and not has_proxy
