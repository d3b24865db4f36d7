"""Registers of chips on I2C.

`protocol` has the records, `wire` is between request and answer, and `translator` asks.
"""
