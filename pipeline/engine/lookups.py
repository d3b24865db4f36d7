"""Names of Java that pyspark looks up, which are remembered here.

pyspark asks for the class of functions and for the function at each use of one, and Java searches all jars
several times for a name without its package. That was a fifth of all requests of a job.
"""

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JVMView
from pyspark import SparkContext


class _Class(JavaClass):  # type: ignore[misc]  # py4j has no types
    """A class of Java, which is asked once for each method."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            setattr(self, name, found)
        return found


class _View(JVMView):  # type: ignore[misc]
    """A view of Java, which is asked once for each class."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaClass):
            found = _Class(found._fqn, self._gateway_client)
            setattr(self, name, found)
        return found


def remember() -> None:
    """Let pyspark remember what it looks up in the Java that it is connected to."""
    # ruff: noqa: SLF001 (pyspark has no public name for its view of Java)
    view: Any = SparkContext._jvm
    SparkContext._jvm = _View(view._gateway_client, view._jvm_name, view._id)
