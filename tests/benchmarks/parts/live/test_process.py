"""That a process resumed is read from the steps that it noted itself."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.parts.live.process import EXAMPLE, Resumed, ending, local_settings, read_steps
from tests.patience import PATIENCE_S

STEPS, EVERY = 12, 4
GOOD = Resumed(2, "outranked", 4, 6, 2, 0, True)


def noted(folder: Path, first: range, second: range, weight: int | None = None) -> Resumed:
    lines = [f"1 {step}\n" for step in first] + [f"2 {step}\n" for step in second]
    (folder / "steps").write_text("".join(lines))
    state = ending(STEPS) if weight is None else {"step": STEPS, "weight": weight}
    (folder / "checkpoint.json").write_text(json.dumps(state))
    return read_steps(folder, STEPS, "outranked", EVERY)


def test_a_process_that_goes_on_from_its_checkpoint_has_resumed(tmp_path: Path) -> None:
    resumed = noted(tmp_path, range(1, 7), range(5, 13))
    assert resumed == GOOD and resumed.is_resumed


@pytest.mark.parametrize(
    ("first", "second", "weight"),
    [
        (range(1, 7), range(1, 13), None),
        (range(1, 7), range(7, 13), None),
        (range(1, 7), range(9, 13), None),
        (range(1, 7), range(5, 12), None),
        (range(1, 13), range(0), None),
        (range(1, 7), range(5, 13), 1),
    ],
    ids=["from the begin", "from no checkpoint", "too far", "not to the end", "one start", "wrong"],
)
def test_any_other_way_to_the_end_has_not(
    tmp_path: Path, first: range, second: range, weight: int | None
) -> None:
    assert not noted(tmp_path, first, second, weight).is_resumed


def test_a_process_that_noted_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="noted no step"):
        read_steps(tmp_path, STEPS, "", EVERY)


@pytest.mark.process
def test_the_example_ends_with_the_same_number_wherever_it_is_cut(tmp_path: Path) -> None:
    for steps in (6, STEPS):
        # Six steps end with a checkpoint of their own; from four, as after a kill, it goes on too.
        command = [sys.executable, str(EXAMPLE), str(tmp_path), "--steps", str(steps)]
        command += ["--step-s", "0", "--save-every", str(EVERY)]
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S)
        assert json.loads((tmp_path / "checkpoint.json").read_text()) == ending(steps)
        (tmp_path / "checkpoint.json").write_text(json.dumps(ending(EVERY)))
    done = [int(line.split()[1]) for line in (tmp_path / "steps").read_text().splitlines()]
    assert done == [*range(1, 7), *range(5, 13)]


def test_what_protects_a_real_process_is_as_much_shorter_as_the_day() -> None:
    slow, fast = local_settings("local", 1.0), local_settings("local", 300.0)
    assert slow.start_protection_s == 300 * fast.start_protection_s
    assert slow.min_residency_s == 300 * fast.min_residency_s
    assert fast.time_scale == 1.0 and fast.preemption_protection == "progress"
    assert replace(GOOD, checkpoint_step=0).is_resumed is False
