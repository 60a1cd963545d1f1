"""Descriptions of fields come from the docstrings below them."""

from __future__ import annotations

from berth_client import answers
from services.gateway.responses.answers import describe_answers, field_docstrings


def test_a_type_has_the_docstrings_of_the_types_that_it_extends() -> None:
    texts = field_docstrings(answers.KeyReceipt)
    assert texts["trace_id"] == "Trace that begins with this request."
    assert texts["key_id"] == "Public part of the key."


def test_a_docstring_of_two_lines_is_one_line() -> None:
    assert "\n" not in field_docstrings(answers.SubmissionReceipt)["start"]


def test_only_types_of_the_client_are_described() -> None:
    schemas: dict[str, dict[str, dict[str, dict[str, str]]]] = {
        "CommandReceipt": {"properties": {"command_id": {}, "trace_id": {}}},
        "Other": {"properties": {"next": {}}},
    }
    describe_answers(schemas)
    described = schemas["CommandReceipt"]["properties"]["trace_id"]
    assert described == {"description": "Trace that begins with this request."}
    assert schemas["Other"] == {"properties": {"next": {}}}
