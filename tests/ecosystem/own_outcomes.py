"""Plugin of pytest: writes a line of JSON for every test that ends, into the file that OWN_OUTCOMES names."""

import json
import os
from pathlib import Path
from typing import Any


def pytest_runtest_logreport(report: Any) -> None:
    """A test has passed when it was called; it can fail before and after that, too."""
    if report.when == "call" or report.outcome != "passed":
        _write(report.nodeid, report.outcome, report)


def pytest_collectreport(report: Any) -> None:
    if report.outcome == "failed":
        _write(report.nodeid, "failed", report)


def _write(test: str, outcome: str, report: Any) -> None:
    crash = getattr(report.longrepr, "reprcrash", None)
    message = "" if outcome != "failed" else str(crash.message if crash else report.longrepr)
    with Path(os.environ["OWN_OUTCOMES"]).open("a") as file:
        file.write(json.dumps([test, outcome, message[:300]]) + "\n")
