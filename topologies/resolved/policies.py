"""The rules of a side of a bridge, by its own settings, its medium, and what speaks there. Pure."""

from bridges.policy import STEP_S, Policy
from topologies.model import Side
from topologies.resolved.ranks import Rank
from topologies.wiring.filters import Tokens


def policy_of(side: Side, trunk: bool, rank: Rank, keeps: tuple[Tokens, ...]) -> Policy:
    """Return the rules of a side. What matches `keeps` must not leave there."""
    allowed, denied, speaks = side.allowed, side.denied, side.speaks
    return Policy(
        trunk,
        allow=allowed.both,
        deny=denied.both,
        allow_in=allowed.inward,
        deny_in=denied.inward,
        allow_out=allowed.outward,
        deny_out=(*denied.outward, *keeps),
        opaque=side.medium is None or side.medium.opaque,
        hold_s=STEP_S * sum(rank),
        hold_always=bool(rank.others),
        deaf=_is_deaf(side),
        replay_s=_replay_s(side),
        judge=side.judge,
        stops_in_doubt=speaks is not None and not speaks.asks and speaks.stops_in_doubt,
        anew=speaks is not None and speaks.anew,
        answers=speaks is not None and speaks.asks,
        late=side.late if side.medium is not None else not trunk,
    )


def _replay_s(side: Side) -> float | None:
    """Return how young a frame must be at a takeover to be sent there; None for as old as the window has it.

    A command must not come late. The age of `shed` counts, or else of the medium, where one is given, and the
    age of the protocol, which has a default.
    """
    medium_ms = None if side.medium is None else side.medium.replay_ms
    ages = [medium_ms if side.shed is None or side.shed.age_ms is None else side.shed.age_ms]
    if side.speaks is not None:
        ages.append(side.speaks.age_ms if side.speaks.replay and not side.speaks.asks else 0)
    return min((age / 1000 for age in ages if age is not None), default=None)


def _is_deaf(side: Side) -> bool:
    """Return whether a standby cannot know there what the active bridge has sent."""
    speaks, medium = side.speaks, side.medium
    return medium is not None and (medium.deaf or (speaks is not None and speaks.deaf))
