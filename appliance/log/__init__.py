"""The log of a command, on standard error, and on buses where a topology says so.

`formats` has the forms of a line: for people, for the journal, for programs. `repeats` holds back lines that
have one cause, and `output` writes without ever blocking the logger. `unpublished` keeps lines for buses.
"""
