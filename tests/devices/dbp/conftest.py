"""Catalogs that run on loopback, for the tests of nodes, monitors, beacons and proxies."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.device import CatalogSpec
from devices.dbp.catalog.service import Catalog
from tests.devices.dbp.catalogs import FAST, HOST, Start
from tests.helpers.ports import free_port


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Return a function that starts a catalog, which ends with the test."""
    made: list[Catalog] = []

    def begin(
        port: int = 0,
        name: str = "catalog",
        bounds: Bounds = FAST,
        tries: int = 1,
        last: Catalog | None = None,
        **settings: Any,
    ) -> Catalog:
        told: dict[str, Any] = {"records": "none", "beacon": False} | settings
        spec = CatalogSpec(on="", catalog=(f"tcp://{HOST}:{port or free_port()}",), **told)
        made.append(Catalog(name, spec, bounds, tries))
        if last is not None:
            made[-1].follow(last)
            last.close()
        made[-1].start(asyncio.get_running_loop())
        return made[-1]

    yield begin
    for one in made:
        one.close()
