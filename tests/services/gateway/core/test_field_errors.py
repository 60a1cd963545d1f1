"""Errors name field and rule; values that are long, odd or private are not repeated."""

from __future__ import annotations

import pytest

from services.gateway.core.field_errors import FieldError, is_private, nested, plain
from shared.contracts.job_commands import SubmitJob
from shared.contracts.job_spec import JobSpec


@pytest.mark.parametrize("value", [7, 1.5, True, "short"])
def test_a_short_scalar_is_repeated(value: object) -> None:
    assert plain(value) == value


@pytest.mark.parametrize("value", [None, [], {}, "x" * 65, "a\nb", 1e301])
def test_other_values_are_not_repeated(value: object) -> None:
    assert plain(value) is None


def test_an_error_is_readable() -> None:
    assert (
        str(FieldError(field="pool", value="x", rule="no such pool")) == "pool = 'x': no such pool"
    )
    assert str(FieldError(field="", rule="unknown field")) == "body: unknown field"


def test_fields_below_a_private_one_are_private() -> None:
    assert is_private(SubmitJob, ["spec", "env", "TOKEN"])
    assert not is_private(SubmitJob, ["spec", "name"])
    assert not is_private(SubmitJob, ["absent"])


def test_the_model_inside_an_annotation_is_found() -> None:
    assert nested(JobSpec | None) is JobSpec
    assert nested(tuple[JobSpec, ...]) is JobSpec
    assert nested(int) is None
