"""Tables that a job needs twice: persisted, or written to a file where an engine persists nothing."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CHECKPOINT: Final = "buscoupler.checkpoint"

_cached: "Final[list[DataFrame]]" = []


def write_down(spark: "SparkSession") -> None:
    """Let `cached` write files in this session: on Sail, which has no `persist`."""
    spark.conf.set(_CHECKPOINT, "true")


def writes_down(spark: "SparkSession") -> bool:
    """Return whether `cached` writes files in this session: the engine is Sail, which runs no Python of
    ours."""
    return spark.conf.get(_CHECKPOINT, "") == "true"


def cached(frame: "DataFrame") -> "DataFrame":
    """Work out `frame` once. Call `release` at the end: a resident server persists beyond a session."""
    if writes_down(frame.sparkSession):
        return frame.localCheckpoint()
    _cached.append(frame)
    return frame.persist()


def release() -> None:
    """Let go of all tables that are `cached`."""
    while _cached:
        _cached.pop().unpersist()
