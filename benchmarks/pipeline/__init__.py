"""The audit on Spark, Sail and DuckDB: `engines` runs it, `sql` is what DuckDB gets, `work` counts what Spark
does, and `page` writes the page.
"""
