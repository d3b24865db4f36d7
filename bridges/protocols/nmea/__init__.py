"""NMEA 0183: `protocol` has the record, `sentences` the format, `translator` finds and writes them."""
