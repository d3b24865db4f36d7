"""Sessions for the tests of the pipeline's benchmarks, as for those of the pipeline."""

from tests.pipeline.conftest import engines, pytest_generate_tests, spark

__all__ = ["engines", "pytest_generate_tests", "spark"]
