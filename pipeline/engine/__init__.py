"""The engines that jobs run on.

`choice` decides which one, and where. `session` starts Spark: on this machine with a Java (`java` finds one,
`jvm` starts it, `jars` chooses what it loads, `archives` let it start fast, `lookups` remember its names), on
a cluster, which `cluster` looks after, or by Connect. A `resident` Spark stays for the next command; it has a
`keeper`, and is found by the files of `server`. `sail` is an engine without Java, `serve` a Connect server.
`python_side` imports pyspark without pandas.
"""
