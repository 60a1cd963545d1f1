"""The program of an array is taken from the spec of its jobs, and given back."""

from __future__ import annotations

from shared.contracts.array_programs import array_id_of, with_program, without_program
from shared.contracts.job_spec import JobSpec

SPEC = JobSpec(name="train", command=("python", "train.py"), env={"A": "1"}, workdir="/shared")


def test_a_job_of_an_array_names_its_array() -> None:
    assert array_id_of("a.12", 12) == "a"
    assert array_id_of("a.12", None) == ""


def test_a_spec_without_its_program_and_the_program_are_the_spec() -> None:
    bare = without_program(SPEC)
    assert (bare.command, bare.env, bare.workdir) == ((), {}, "/shared")
    assert with_program(bare, SPEC.command, SPEC.env) == SPEC
