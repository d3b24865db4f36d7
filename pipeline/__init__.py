"""PySpark over captures: engines, jobs, and what the jobs share."""
