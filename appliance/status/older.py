"""Statuses of older gateways, whose rows have neither their part nor the state of their link. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from appliance.status.shape import Record, Status
from topologies.wiring.ids import bridge_id

_NO_COUNTS: Mapping[str, Any] = dict.fromkeys(("received", "sent", "queued", "live", "gone", "balance"), 0)


def completed(status: Status) -> Status:
    """Return a status whose rows have `part`, and those of links also `state` and `edges`.

    A status of this version has them already. In an older one the states are in `ends` and `links`, which
    name a row or a link: of two links of one name that no end tells apart, the states may be swapped.
    """
    parts = {part["name"]: part["id"] for part in status["parts"]}
    links = [dict(link) for link in status["links"]]
    hubs = [hub if "part" in hub else _hub(hub, parts, status["ends"], links) for hub in status["hubs"]]
    if links and any("part" not in hub for hub in status["hubs"]):
        hubs.append({"name": "", "part": "", "cuts": [], "links": list(map(_never_opened, links))})
    return status | {
        "hubs": hubs,
        "brokers": [_service(one, parts) for one in status["brokers"]],
        "candidates": [{"part": parts.get(one["bridge"], "")} | one for one in status["candidates"]],
        "taps": [{"part": parts.get(one["name"], "")} | one for one in status["taps"]],
    }


def _service(one: Record, parts: Mapping[str, str]) -> Record:
    part = parts.get(one["name"].removeprefix("broker "), "")
    return {"kind": "", "part": part} | one | {"leases": list(map(_lease, one["leases"]))}


def _lease(lease: Record) -> Record:
    """Return a lease whose candidates have the id of their bridge, as if the lease were of no group."""
    copies = [{"part": bridge_id(lease["bridge"], one["name"])} | one for one in lease["candidates"]]
    return lease | {"candidates": copies}


def _hub(hub: Record, parts: Mapping[str, str], ends: list[Record], links: list[Record]) -> Record:
    """Return a hub with the states of its rows. Each link that is found is taken out of `links`."""
    mine = [end for end in ends if end["hub"] == hub["name"]]
    known = {row["name"]: _of_ends(row["name"], mine, links) for row in hub["links"]}
    # those with peers first: a row of the past may have the same name
    for row in sorted(hub["links"], key=lambda row: not row["live"]):
        known[row["name"]] = known[row["name"]] or _of_links(row["name"], links)
    rows = [row | known[row["name"]] for row in hub["links"]]
    return hub | {"part": parts.get(hub["name"], ""), "links": rows}


def _of_ends(row: str, ends: list[Record], links: list[Record]) -> Record:
    """Return the state by the ends in the picture that a row counts, with their edges."""
    found = [end for end in ends if _is_of(row, end["row"])]
    if not found:
        return {}
    states = {key: found[0][key] for key in ("state", "condition", "fault")}
    link = next((one for one in _named(row, links) if one.get("state", "") == states["state"]), None)
    if link is not None:
        links.remove(link)
    return states | {"losses": (link or {}).get("losses", 0), "edges": [end["id"] for end in found]}


def _of_links(row: str, links: list[Record]) -> Record:
    link = next(_named(row, links), None)
    if link is None:
        return {}
    links.remove(link)
    return _state(link)


def _named(row: str, links: list[Record]) -> Iterator[Record]:
    """Yield the links of a row's name: in a bridge, that stands behind the name of its side."""
    return (link for link in links if row == link["name"] or row.endswith(f"/{link['name']}"))


def _is_of(row: str, link: str) -> bool:
    """Return whether a row of a hub counts a link: in a bridge its side stands before the name, or is it."""
    return row == link or row.startswith(f"{link}/") or row.endswith(f"/{link}")


def _state(link: Record) -> Record:
    return {"state": "", "condition": "", "fault": "", "losses": 0, "edges": []} | {
        key: value for key, value in link.items() if key != "name"
    }


def _never_opened(link: Record) -> Record:
    return {"name": link["name"], "dropped": {}, "rejected": {}, **_NO_COUNTS} | _state(link)
