"""What a job needs twice is worked out once: persisted, or written down where an engine persists nothing."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CHECKPOINT: Final = "buscoupler.checkpoint"

_kept: "Final[list[DataFrame]]" = []


def write_down(spark: "SparkSession") -> None:
    """From now on `kept` writes: on Sail, which has no `persist`."""
    spark.conf.set(_CHECKPOINT, "true")


def kept(frame: "DataFrame") -> "DataFrame":
    """Until `release`: what a resident server persists outlives the session that asked for it."""
    if frame.sparkSession.conf.get(_CHECKPOINT, "") == "true":
        return frame.localCheckpoint()
    _kept.append(frame)
    return frame.persist()


def release() -> None:
    """Let go of all that is `kept`."""
    while _kept:
        _kept.pop().unpersist()
