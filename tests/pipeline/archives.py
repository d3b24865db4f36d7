"""The archive of classes (`buscoupler warm`) that the Javas of a run share.

The Spark that the tests keep writes it while it runs. Without it each Java would read all classes anew, and
each resident Spark would write one at its end, as it does for users.
"""

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from pipeline.engine import jars, java
from pipeline.engine.archives import archive, store
from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOTES: Final = "-XX:+RecordDynamicDumpInfo"
"""The option of a Java that is to write an archive."""
_BEAN: Final = "com.sun.management:type=DiagnosticCommand"


def is_due() -> bool:
    """Return whether there is no archive yet, and one can be written."""
    try:
        if archive(java.find()).exists():
            return False
        jars.unsign()
    except (PipelineError, OSError):
        return False
    return True


def write(spark: "SparkSession") -> None:
    """Let the Java of a session do what `jcmd PID VM.cds dynamic_dump FILE` does. A Java that cannot writes
    none."""
    from py4j.protocol import Py4JError

    target = archive(java.find())
    partial = target.with_suffix(f".{os.getpid()}.tmp")
    gateway = spark.sparkContext._gateway  # noqa: SLF001 (pyspark has no other way to its Java)
    with suppress(Py4JError):
        _invoke(gateway, "vmCds", "dynamic_dump", str(partial))
    if partial.exists():
        store(partial, target)


def _invoke(gateway: Any, command: str, *words: str) -> None:
    """Run a diagnostic command. By reflection, because the class of the server of beans is not exported."""
    machine = gateway.jvm
    name = machine.javax.management.ObjectName(_BEAN)
    arguments = _array(gateway, machine.Object, _array(gateway, machine.String, *words))
    kinds = _array(gateway, machine.String, "[Ljava.lang.String;")
    methods = machine.java.lang.Class.forName("javax.management.MBeanServer").getMethods()
    invoke = next(method for method in methods if method.getName() == "invoke")
    server = machine.java.lang.management.ManagementFactory.getPlatformMBeanServer()
    invoke.invoke(server, _array(gateway, machine.Object, name, command, arguments, kinds))


def _array(gateway: Any, kind: Any, *values: object) -> Any:
    made = gateway.new_array(kind, len(values))
    for number, value in enumerate(values):
        made[number] = value
    return made
