"""A refusal of Slurm is passed on without the name of its command."""

from __future__ import annotations

from services.executor.engines.slurm.slurm import refusal_words


def test_a_refusal_has_slurms_own_words_once() -> None:
    text = (
        "sbatch: error: CPU count per node can not be satisfied\n"
        "sbatch: error: Batch job submission failed: Requested node configuration is not available"
    )
    assert refusal_words(text) == (
        "Slurm: CPU count per node can not be satisfied; "
        "Batch job submission failed: Requested node configuration is not available"
    )
