"""Devices that answer lines of text when they are asked: laboratory devices (SCPI), scales, ELM327.

`protocol` has the records, `coding` the way from text to values and back, `answers` finds values in an
answer, `dialogue` is between query and answer, and `translator` asks.
"""
