"""The conformance suite, and the makers of every link of ours."""

import pytest

pytest.register_assert_rewrite("tests.conformance.suite")
