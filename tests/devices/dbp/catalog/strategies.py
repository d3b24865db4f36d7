"""Strategies for JSON values, JSON objects and frames of DBP."""

from hypothesis import strategies as st

from tests.devices.dbp.catalog import original

leaves = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.text(), values, max_size=6)
any_frame = st.binary(max_size=12) | st.sampled_from(
    [
        b"",
        b"u_U",
        b"UwU",
        b"UoU",
        b"OwO",
        b"OmO",
        b"<3",
        b"</3",
        b"ping",
        b"1",
        original.TIME,
        b"{}",
        b'{"name": "a"}',
    ]
)
