"""Bytes as they are: `protocol` has the record, `translator` cuts chunks, `streams` follows their numbers."""
