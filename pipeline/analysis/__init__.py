"""The analysis of captures: DataFrames in and out, and explanations in plain Python.

A job has a module here: `latency`, `rates`, `last`, `failovers`, `tokens`, `logs`, `signals`, `quality` and
`watch`, whose tables `watched` reads. That of the audit is the package `audit`. `views` are for SQL. What
several of them need is in `shared`.
"""
