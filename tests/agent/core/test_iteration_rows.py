"""Rows become columns; only the newest are kept, and columns that say nothing are empty."""

from __future__ import annotations

from berth_agent.core.iteration_rows import (
    MAX_ITERATIONS,
    MAX_PHASES,
    IterationRow,
    IterationRows,
    ProcessShape,
)
from berth_agent.messages import Iterations
from shared.contracts import agents as contract

NAME = "0/7/0/3"


def rows_of(*rows: IterationRow) -> IterationRows:
    kept = IterationRows()
    for row in rows:
        kept.add(row, ProcessShape({"dp": 3}, microbatches=8))
    return kept


def test_plain_iterations_have_no_other_columns() -> None:
    message = rows_of(IterationRow(1, 0.5), IterationRow(2, 0.25)).message(NAME, 3, 3)
    assert message == Iterations(
        allocation_id=NAME,
        rank=3,
        process=3,
        iteration_s=(0.5, 0.25),
        steps=(1, 2),
        layout={"dp": 3},
        microbatches=8,
    )


def test_a_value_that_is_missing_is_null_in_its_column() -> None:
    kept = rows_of(
        IterationRow(1, 0.5, own_s=0.25, delay_s=0.0625, samples=8, phases={"forward": 0.125}),
        IterationRow(2, 9.0, kind="evaluation"),
    )
    message = kept.message(NAME, 3, 3)
    assert (message.own_s, message.samples) == ((0.25, None), (8, None))
    assert message.delay_s == (0.0625, None)
    assert (message.wait_s, message.tokens) == ((), ())
    assert message.kinds == ("train", "evaluation")
    assert message.phases == {"forward": (0.125, None)}
    contract.Iterations.model_validate(message.to_json())
    assert Iterations.from_json(message.to_json()) == message


def test_the_newest_are_kept() -> None:
    kept = rows_of(IterationRow(0, 0.5))
    kept.extend(rows_of(*(IterationRow(step, 0.5) for step in range(1, MAX_ITERATIONS + 1))))
    assert kept.message(NAME, 3, 3).steps == tuple(range(1, MAX_ITERATIONS + 1))


def test_phases_are_as_many_as_a_message_holds() -> None:
    many = [IterationRow(n, 0.5, phases={f"p{n}": 0.5}) for n in range(2 * MAX_PHASES)]
    phases = rows_of(*many).message(NAME, 3, 3).phases
    assert set(phases) == {f"p{n}" for n in range(MAX_PHASES, 2 * MAX_PHASES)}
