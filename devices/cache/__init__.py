"""The last value cache: it keeps the newest frame of each pattern, and gives it to who asks.

`device` is its record and `service` runs it. `answering` gives answers in small parts, and `subscribed` hears
what the services of a catalog publish. `bus.asking` has the frames of questions and answers.
"""
