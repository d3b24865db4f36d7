"""The last value cache: it keeps the newest frame of each pattern, and gives it to peers that ask.

`device` is its record and `service` runs it. `answering` makes answers in small parts, and `subscribed` gets
the publications of a catalog's services. `bus.asking` has the frames of questions and answers.
"""
