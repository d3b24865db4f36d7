"""The outlets of alarms: what tells people, each in a thread of its own with a bounded queue.

`outlet` is that thread, seen as a link. `webhook` posts JSON, `command` runs a program and `mail` sends
e-mail: each has a function that delivers one notice. `making` makes the outlet of a record.
"""
