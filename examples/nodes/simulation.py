"""A message bus in one program: a catalog, ten services and two clients.

    python examples/nodes/simulation.py

Each client asks the catalog for the services, and then asks each service directly. One service leaves,
another one comes, and at last a client subscribes to a service.
"""

import asyncio
from contextlib import AsyncExitStack, suppress

from buscoupler import Client, Request, Service
from devices.dbp.catalog.device import CatalogSpec
from devices.dbp.catalog.service import Catalog

NAMES = ("Rohan", "Gondor", "Mordor", "Shire", "Bree", "Moria", "Lorien", "Isengard", "Erebor", "Mirkwood")


def service(name: str, url: str) -> Service:
    """Return a service that greets its clients."""

    def greet(request: Request) -> str:
        return f"{name} greets {request.data.decode()}"

    return Service(name, {"greet": greet}, catalog=url, function="greets", topics=["beacons"], publishes=True)


async def client(name: str, url: str) -> list[str]:
    """Ask all listed services. Return their answers."""
    async with Client(url) as asker:
        listed = await asker.services()
        answers = [await asker.ask(one, "greet", name.encode()) for one in sorted(listed)]
        return [b"".join(answer).decode() for answer in answers]


async def hear(name: str, publisher: Service, url: str) -> str:
    """Subscribe to a service, and return its first publication in words."""
    async with Client(url) as asker:
        stream = asker.subscribe(publisher.name, "beacons")
        first = asyncio.ensure_future(anext(stream))
        while not first.done():  # a subscription takes a moment to arrive
            publisher.publish("beacons", b"are lit")
            await asyncio.sleep(0.01)
        topic, data = await first
        await stream.aclose()
    return f"{name} hears from {publisher.name}: {topic} {data.decode()}"


async def main() -> None:
    """Run the simulation."""
    spec = CatalogSpec(on="", catalog=("tcp://127.0.0.1:0",), records="none", beacon=False)
    catalog = Catalog("catalog", spec)
    catalog.start(asyncio.get_running_loop())
    url = catalog.urls[0]
    async with AsyncExitStack() as stack:
        services = [await stack.enter_async_context(service(name, url)) for name in NAMES]
        await asyncio.gather(*(one.listed() for one in services))
        for answers in await asyncio.gather(client("Frodo", url), client("Sam", url)):
            print("\n".join(answers))
        await services[2].close()
        late = await stack.enter_async_context(service("Dale", url))
        await late.listed()
        print("\n".join(await client("Frodo", url)))
        print(await hear("Sam", services[1], url))
    catalog.close()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
