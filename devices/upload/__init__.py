"""Uploads: finished capture files go to an object store, or to another directory, each row once.

`device` is the record, and `service` the gateway's side. `uploader` is the process that does the work: it
links finished files into a `spool`, and stores them from there.
"""
