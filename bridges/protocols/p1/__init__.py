"""P1 of smart meters, and other meters that send the same lines by themselves (IEC 62056-21, mode D).

`protocol` has the record, `codes` what OBIS codes are, `telegram` the format and its check, `lines` the
values in a line, `translator` gives them out.
"""
