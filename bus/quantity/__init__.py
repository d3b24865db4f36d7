"""Quantities: what the values of devices are, as bytes of the device and as the data of frames. Pure.

`raw` turns bytes of a device into numbers and back: types such as `u16`, and orders such as `CDAB`. `scale`
makes values of these numbers by decimal arithmetic. `forms` writes values as the data of frames, and reads
them back. `coding` joins the three, and `settings` are those of all files. `sentences` has the values in
those of NMEA 0183. `quantity` describes what the
values under a pattern are, `known` has those that a process knows, `telling` the words for them and their
values, and `readings` the last frame of each.
"""
