"""The engines that jobs run on.

`choice` decides which one, and where. `session` starts Spark: on this machine with a Java (`java` finds one,
`jvm` starts it, `jars` chooses what it loads), on a cluster, or by Connect. `sail` is an engine without Java,
`serve` a resident server.
"""
