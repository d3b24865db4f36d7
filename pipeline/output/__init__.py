"""The output of jobs: `tables` as text with `names` for tokens, `objects` as JSON, the `page` of a report
with its plots (`svg`), the `textfile` of metrics, and the `sinks` of alerts. `place` says whether they can be
written.
"""
