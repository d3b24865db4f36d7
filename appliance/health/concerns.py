"""The concerns about the links, roles and recorders of a gateway: what is wrong with them now. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from appliance.status.conditions import judged
from appliance.status.health import Concern, Word
from appliance.status.rows import LinkRow
from appliance.status.silent import HEARD_MS
from appliance.status.view import ShownPart
from appliance.status.words import TROUBLE_MS, TWINS, counted
from bus.hub import Hub, LinkView
from bus.machine.lasting import doubt, is_valid
from bus.reasons import DROPPED
from bus.watch.watched import WatchedHub
from bus.wire.x509 import Span

if TYPE_CHECKING:  # most gateways have neither, and start faster without
    from bus.leases.candidacy import Candidacy
    from bus.leases.candidate import Reach
    from bus.tmq.wire import Address
    from devices.tap.recorder import Recorder

RECENT_S: Final = 60.0
_KEYS: Final = "give both ends the same keys"
_CAUSES: Final = {
    "queue full": "{} takes less than is sent",
    "forged": f"the other end has another key: {_KEYS}",
    "unsigned": f"the other end signs nothing: {_KEYS}",
    "signed": f"the other end signs, and there are no keys here: {_KEYS}",
    "clock": "the clocks of both ends differ: set them",
    "replayed": "messages come again: another gateway has this one's name, or somebody repeats them",
    "error frame": "a frame failed on the wire: look at cable, termination and bit rate",
    "overrun": "more came than this machine takes",
}
_MEANINGS: Final = {reason.word: reason.meaning for reason in DROPPED} | _CAUSES


class RecentCounts(NamedTuple):
    """The last drops or rejects of a link: when, in s, monotonic, counts by reason, and which peer most."""

    at_s: float
    counts: Mapping[str, int]
    peer: str = ""


def of_links(rows: Iterable[LinkRow], lasting: Collection[LinkView]) -> Iterator[Concern]:
    """Yield links that are not up for a while (`lasting`), or have a condition that is not well."""
    for row in {row.link: row for row in rows}.values():
        if row.link in lasting:
            yield Concern("trouble", row.source, row.fault or "nothing answers")
        elif (found := judged(row.link.condition)).word != "ok":
            yield Concern(found.word, row.source, found.text)


def of_certificates(spans: Mapping[str, Span], now_s: float) -> Iterator[Concern]:
    """Yield files of certificates that are not valid, or end within 30 days. `now_s` is since 1970."""
    for path, span in spans.items():
        if text := doubt(path, span, now_s):
            yield Concern("degraded" if is_valid(span, now_s) else "trouble", "certificate", text)


def of_drops(drops: Mapping[str, RecentCounts], now_s: float) -> Iterator[Concern]:
    """Yield links that dropped messages within the last `RECENT_S`."""
    return _recent("messages were dropped", drops, now_s)


def of_rejects(rejects: Mapping[str, RecentCounts], now_s: float) -> Iterator[Concern]:
    """Yield links that rejected input of reasons `AMISS` within the last `RECENT_S`."""
    return _recent("input was rejected", rejects, now_s)


def _recent(words: str, noted: Mapping[str, RecentCounts], now_s: float) -> Iterator[Concern]:
    for name, told in noted.items():
        if now_s - told.at_s < RECENT_S:
            most = max(told.counts, key=lambda reason: told.counts[reason])
            cause = _MEANINGS.get(most, "").format(told.peer or "who is there")
            yield Concern("degraded", name, ": ".join(filter(None, (words, counted(told.counts), cause))))


def of_loops(hubs: Iterable[Hub]) -> Iterator[Concern]:
    """Yield each hub that has cut pipes, because what it sent came back by them."""
    for hub in hubs:
        if isinstance(hub, WatchedHub) and hub.cuts:
            names = ", ".join(cut.pipe.name for cut in hub.cuts)
            yield Concern(
                "trouble",
                hub.name,
                f"a loop; cut: {names}: two ways lead to the same place, take one of them away",
            )


def of_parts(parts: Iterable[ShownPart]) -> Iterator[Concern]:
    """Yield what is wrong with the failovers and recorders of some parts."""
    for part in parts:
        if part.candidacy is not None:
            yield from _of_role(part.candidacy)
        if part.beside is not None and part.beside.down:
            yield Concern("degraded", part.beside.bridge, f"does not forward here: {part.beside.down}")
        for recorder in part.recorders:
            yield from _of_recorder(recorder)


def _of_role(candidacy: "Candidacy") -> Iterator[Concern]:
    candidate, name = candidacy.candidate, f"bridge {candidacy.bridge}"
    if not candidate.ready:
        yield Concern("degraded", name, f"cannot take over: {candidate.cause}")
    elif not candidate.settling and not candidate.holder_name and candidate.state != "active":
        yield Concern("trouble", name, f"nobody is known to forward: {candidate.cause}")


def _of_recorder(recorder: "Recorder") -> Iterator[Concern]:
    """Yield a loss. One that does not record is a link that is not up, whose reason says why."""
    if recorder.state == "up" and recorder.is_losing:
        text = f"{recorder.lost} messages were not recorded: the disk or this machine is too slow"
        yield Concern("degraded", f"tap {recorder.name}", text)


def of_brokers(parts: Iterable[ShownPart]) -> Iterator[Concern]:
    """Yield the brokers that do not answer this gateway: trouble if a bridge hears none, for then nothing is
    taken over."""
    away: dict[Address, Reach] = {}
    word: Word = "degraded"
    for candidacy in (part.candidacy for part in parts if part.candidacy is not None):
        away.update(candidacy.away(TROUBLE_MS / 1000))
        if not any(view.reach == "up" for view in candidacy.candidate.views):
            word = "trouble"
    for (host, port), reach in away.items():
        why = "it refuses connections" if reach == "refused" else "it cannot be reached"
        yield Concern(word, f"broker {host}:{port}", f"no answer: {why}")


def of_twins(hosts: Mapping[str, Collection[str]]) -> Iterator[Concern]:
    """Yield the gateways of whose name several run, by the hosts whose claims brokers here hear."""
    for name, found in hosts.items():
        text = f"several have this name, at {' and '.join(found)}: {TWINS}"
        yield Concern("trouble", f"gateway {name}", text)


def of_claims(ages_ms: Mapping[str, int], gateway: str) -> Iterator[Concern]:
    """Yield the other gateways whose claims a broker here has heard, and hears no more."""
    for name, age_ms in ages_ms.items():
        if name != gateway and age_ms >= HEARD_MS:
            yield Concern("degraded", f"gateway {name}", "silent: it could not take over")
