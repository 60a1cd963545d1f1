"""Progress is read from the lines that trainings print, and from nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth_agent.core.printed_progress import (
    LARGEST,
    TAIL_BYTES,
    Counted,
    PrintedProgress,
    newest_counts,
)


def bar(done: int, total: int, described: str = "") -> str:
    """Return a bar in the form that tqdm documents as its `bar_format`."""
    eighths, share = "▏▎▍▌▋▊▉█", done / total
    filled = "█" * int(share * 10) + (eighths[int(share * 80) % 8] if share < 1 else "")
    rest = f"00:{done % 60:02d}<00:20, 31.04it/s, loss=0.31"
    return f"\r{described}{share * 100:3.0f}%|{filled:<10}| {done}/{total} [{rest}]"


def seen(*outputs: str) -> list[Counted | None]:
    """Return what is known after each output, the earlier ones of a worker before it."""
    progress, printed, known = PrintedProgress(), b"", []
    for output in outputs:
        printed += output.encode()
        known.append(progress.note(printed))
    return known


@pytest.mark.parametrize(
    ("output", "counted"),
    [
        (bar(370, 1000), (370, 1000)),
        ("".join(bar(n, 1000) for n in range(371)), (370, 1000)),
        ("\r 37%|###7      | 370/1000 [00:12<00:20, 31.0it/s]", (370, 1000)),
        ("\rTraining:   0%|          | 0/1000 [00:00<?, ?it/s]", (0, 1000)),
        (bar(8, 100) + "\n\x1b[A", (8, 100)),
        ("iteration 12/100 loss 0.5\n", (12, 100)),
        ("[2026-01-01 10:00:00] Step: [12/100] lr 0.1 3/4\n", (12, 100)),
        ("global_step = 7 of 100", (7, 100)),
        ("Epoch 3/10\n", (2, 10)),
        ("Epoch 3/10, Step 12/100: loss 1\n", (212, 1000)),
        ("Epoch [3/10], Step [12/100], Loss: 1.2\n", (212, 1000)),
        (bar(370, 1000, "Epoch 3/10: "), (2370, 10_000)),
        ("Epoch 3/10\n" + bar(370, 1000), (2370, 10_000)),
        ("Epoch 3/10" + bar(1000, 1000) + "\nEpoch 4/10\n", (3, 10)),
    ],
)
def test_the_newest_line_that_counts_is_read(output: str, counted: Counted) -> None:
    assert seen(output) == [counted]


@pytest.mark.parametrize(
    "output",
    [
        "",
        "loss 0.5 at 3/4\n",
        "12it [00:01, 10.2it/s]",
        " 12%|#2        | 1.2k/10.0k [00:12<00:20, 31.0it/s]",
        "iteration 101/100\n",
        "iteration 0/0\n",
        "iterated 3/10, steps/s 3/10\n",
        "see https://example.org/step/3/10\n",
        "step 1234567890123/9999999999999\n",
        "Epoch 1/999999999999 step 1/999999999999\n",
        "epoch_3/10\n",
    ],
)
def test_anything_else_is_not(output: str) -> None:
    assert seen(output) == [None]


def test_a_bar_that_begins_again_is_believed_no_more() -> None:
    first, again = bar(900, 1000), bar(5, 1000)
    assert seen(first, again, bar(950, 1000)) == [(900, 1000), None, None]


def test_an_evaluation_within_a_training_is_left_out() -> None:
    outputs = bar(500, 1000), "\n" + bar(3, 50), bar(50, 50), "\n" + bar(510, 1000)
    assert seen(*outputs) == [(500, 1000), None, None, (510, 1000)]


def test_a_training_begins_where_its_data_are_loaded() -> None:
    assert seen(bar(9, 9), "\n" + bar(1, 1000)) == [(9, 9), (1, 1000)]


def test_bars_that_take_turns_count_parts() -> None:
    turns = [bar(90, 90), "\n" + bar(50, 50), "\n" + bar(1, 90), bar(90, 90), "\n" + bar(9, 50)]
    assert seen(*turns)[2:] == [None, None, None]


def test_an_epoch_goes_on_after_its_line_is_out_of_sight() -> None:
    much = " " * TAIL_BYTES
    outputs = "Epoch 3/10\n" + bar(10, 100), much + bar(20, 100), much + bar(5, 100)
    assert seen(*outputs) == [(210, 1000), (220, 1000), None], "which epoch has begun is not known"
    evaluated = "Epoch 3/10\n" + bar(100, 100), "\n" + bar(2, 20), "\nEpoch 4/10\n" + bar(1, 100)
    assert seen(*evaluated) == [(300, 1000), None, (301, 1000)]


@given(st.lists(st.binary(max_size=TAIL_BYTES + 99), max_size=4))
def test_any_output_is_read(outputs: list[bytes]) -> None:
    progress = PrintedProgress()
    for output in outputs:
        counted = progress.note(output)
        assert counted is None or 0 <= counted[0] <= counted[1] <= LARGEST


@given(
    st.lists(
        st.sampled_from(["Epoch 1/3\n", "epoch 9/9", "\r", "step 7/8\n", "100%|", "| 3/4 [", "x"]),
        max_size=30,
    )
)
def test_any_order_of_lines_gives_no_more_than_the_whole(parts: list[str]) -> None:
    progress = PrintedProgress()
    for length in range(len(parts)):
        counted = progress.note("".join(parts[:length]).encode())
        assert counted is None or 0 <= counted[0] <= counted[1]


@pytest.mark.parametrize("part", [b"%|", b"1%|", b"epoch ", b"step [[[[", b"step 1", b"1%|| 1/1 "])
def test_a_hostile_tail_gives_nothing(part: bytes) -> None:
    assert newest_counts(part * TAIL_BYTES) == (None, None)
