"""The limits of TMQ's clients and brokers."""

import pytest

from bus.tmq.options import Options


@pytest.mark.parametrize(
    ("heartbeat_s", "silence_ms"), [(0.1, 300), (1.0, 3000), (21.8, 65_400), (21.845, 65_535), (30.0, 65_535)]
)
def test_who_is_silent_for_three_heartbeats_is_given_up(heartbeat_s: float, silence_ms: int) -> None:
    assert Options(heartbeat_s=heartbeat_s).silence_ms == silence_ms


def test_pauses_between_attempts_do_not_shrink() -> None:
    Options(retry_min_s=2.0, retry_max_s=2.0)
    with pytest.raises(ValueError, match="at most retry_max_s"):
        Options(retry_min_s=2.1, retry_max_s=2.0)
    with pytest.raises(ValueError, match="above 0"):
        Options(retry_min_s=0.0)


def test_256_dials_are_begun_at_a_time() -> None:
    assert Options().dials == 256
