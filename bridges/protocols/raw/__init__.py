"""CAN frames as they are: `protocol` has the record, `translator` puts identifiers into patterns, and `judge`
knows which of them pass.
"""
