"""Checks of positions, and the report that has their violations."""

from __future__ import annotations

from shared.ledger.partition import TP
from shared.ledger.reader import Cursor
from shared.verify.reading import InputRecords
from shared.verify.report import (
    ACKED,
    VerifyReport,
    check_acked,
    check_changed,
    check_inputs,
    check_time,
)


def test_a_report_without_violations_is_green() -> None:
    report = VerifyReport()
    check_time(report, ("placement", 0), 5, 5)
    check_inputs(report, ("placement", 0), Cursor(inputs={"commands-0": 3}))
    assert report.ok


def test_only_topics_without_retention_must_keep_what_was_read() -> None:
    report = VerifyReport()
    check_changed(report, [TP("events", 0), TP("llm.requests", 0), TP("commands", 1)])
    assert [violation.position for violation in report.violations] == ["commands-1"]


def test_a_rule_is_named_once_and_only_where_it_was_checked() -> None:
    unchecked, checked = VerifyReport(), VerifyReport()
    check_acked(unchecked, [], InputRecords())
    check_changed(checked, [TP("commands", 0)])
    check_acked(checked, ["lost"], InputRecords())
    assert (unchecked.rules, checked.rules) == ([], [ACKED])
