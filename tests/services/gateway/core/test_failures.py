"""Advice beside a failure in an answer."""

from __future__ import annotations

import pytest

from services.gateway.core.failures import add_advice
from shared.contracts.failures import ADVICE


def test_a_known_reason_gets_its_advice() -> None:
    body: dict[str, object] = {"failure": {"reason": "exit_code"}}
    add_advice(body)
    assert body == {"failure": {"reason": "exit_code", "advice": ADVICE["exit_code"]}}


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        ({"reason": "signal", "detail": "SIGKILL"}, "out of memory"),
        ({"reason": "signal", "detail": "SIGSEGV"}, "a crash of the program"),
        ({"reason": "command_missing", "detail": "x: its interpreter '/y' does"}, "first line"),
        ({"reason": "exit_code", "output": ["ModuleNotFoundError: No module named 'torch'"]}, "Py"),
        ({"reason": "exit_code", "output": ["Traceback", "MemoryError"]}, "`berth submit --mem"),
    ],
)
def test_the_detail_and_the_output_choose_the_advice(failure: dict[str, object], text: str) -> None:
    add_advice({"failure": failure})
    assert text in str(failure["advice"])


def test_a_program_that_misses_a_file_is_explained_where_it_runs() -> None:
    line = "python3: can't open file '/work/j.1.0/train.py': [Errno 2] No such file or directory"
    failure: dict[str, object] = {"reason": "exit_code", "output": ["starting", line]}
    add_advice({"failure": failure})
    assert "in a private folder of its node: `--upload DIR` sends your files" in str(
        failure["advice"]
    )
    add_advice({"failure": failure, "spec": {"workdir": "/data"}})
    assert str(failure["advice"]).startswith("workers start in /data (`--workdir`)")
    add_advice({"failure": failure}, {"workdir": "/home"})
    assert str(failure["advice"]).startswith("workers start in /home (`--workdir`)")


def test_a_row_without_a_failure_stays_as_it_is() -> None:
    body: dict[str, object] = {"failure": None}
    add_advice(body)
    assert body == {"failure": None}
