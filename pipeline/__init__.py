"""PySpark over captures: the schema, the session, one module a job."""
