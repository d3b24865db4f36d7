"""Jobs on captures, with PySpark: the `jobs`, the `analysis` they do, the `engine` they run on."""
