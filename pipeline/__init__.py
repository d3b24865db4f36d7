"""Jobs on captures, with PySpark.

`jobs` has a record for each job, `analysis` what they work out, `input` the rows, `signals` the values in
them, `output` tables and pages, `engine` what all of it runs on. `errors` are for the user, `cache`
keeps tables that are needed twice, `reach` tries the addresses of servers.
"""
