"""What a process of pytest-xdist reports of each test."""

import pytest
from _pytest.runner import runtestprotocol


class Results:
    """Reports of a test its result, and what failed or was skipped before and after it.

    By pytest and pytest-xdist these are six messages a test, whose sending and reading takes more of a
    processor than most tests do. The process that hears them counts results alone.
    """

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if report.when == "call" or not report.passed:
                item.ihook.pytest_runtest_logreport(report=report)
        return True
