"""The output of jobs: `tables` as text with `names` for tokens, and the `page` of a report with its plots
(`svg`). `place` says whether they can be written.
"""
