"""Test traffic: say and hear frames on any link (`send`, `recv`, `traffic`)."""
