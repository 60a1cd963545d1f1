from __future__ import annotations

from services.admission.core.body import DIGEST_CHARS, canonical_body, digest_of
from shared.contracts.job_spec import Gang, JobSpec

SPEC = JobSpec(name="train", env={"B": "2", "A": "1"})


def test_the_order_of_pairs_does_not_matter() -> None:
    other = JobSpec(name="train", env={"A": "1", "B": "2"})
    assert canonical_body(SPEC, 1) == canonical_body(other, 1)


def test_a_default_written_out_does_not_matter() -> None:
    other = SPEC.model_copy(update={"gang": Gang(workers=1), "priority_class": "normal"})
    assert canonical_body(SPEC, 1) == canonical_body(other, 1)


def test_another_array_size_or_field_is_another_body() -> None:
    other = SPEC.model_copy(update={"spot": True})
    bodies = {canonical_body(SPEC, 1), canonical_body(SPEC, 2), canonical_body(other, 1)}
    assert len({digest_of(body) for body in bodies}) == 3


def test_a_digest_has_a_fixed_length() -> None:
    assert len(digest_of(b"")) == DIGEST_CHARS
