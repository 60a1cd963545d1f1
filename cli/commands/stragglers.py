"""`berth stragglers`: slow ranks by the files of other tools, without a stack."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from cli.errors import BadInput
from cli.input.arguments import AsJson
from cli.text.output import emit, table
from services.failslow.core.measures.relative_scores import THRESHOLD, relative_perf_scores
from services.failslow.core.readers import flight_recorder, nccl_inspector, nvrx

RANK = re.compile(r"(\d+)\D*$")

Files = Annotated[
    list[Path],
    typer.Argument(help="Flight recorder dumps, inspector files, or one NVRx report.", exists=True),
]


def stragglers(
    files: Files,
    threshold: Annotated[
        float, typer.Option(min=0, max=1, help="Score below which a rank is slow.")
    ] = THRESHOLD,
    as_json: AsJson = False,
) -> None:
    """Score the ranks of a training relative to the fastest (1), by files of other tools.

    Takes the flight recorder dumps of all ranks (JSON or pickle, the rank ends the name), the
    Prometheus files of NCCL's inspector, or a straggler report of NVRx as JSON. Needs no stack.
    """
    scores = read_scores(files)
    slow = [name for name, score in scores.items() if score < threshold]
    if as_json:
        emit({"relative_perf_scores": scores, "stragglers": slow})
        return
    words = dict.fromkeys(slow, "slow")
    cells = ((name, f"{score:.2f}", words.get(name, "")) for name, score in scores.items())
    table(("RANK", "SCORE", ""), cells, "no rank has a score")


def read_scores(files: Sequence[Path]) -> dict[str, float]:
    """Return the score of each rank or GPU by name. Raises BadInput."""
    try:
        contents = {path: path.read_bytes() for path in files}
        return _scores(contents)
    except (OSError, ValueError) as error:
        raise BadInput(str(error)) from None


def _scores(contents: dict[Path, bytes]) -> dict[str, float]:
    first = next(iter(contents.values())).lstrip()
    if first[:1] == b"{" and b"perf_scores" in first:
        if len(contents) > 1:
            raise ValueError(f"NVRx reports: {len(contents)}; one is allowed")
        return _by_name(nvrx.read_report(first.decode()).scores())
    if first[:1] == b"#" or first[:5] == b"nccl_":
        return _inspector_scores([data.decode() for data in contents.values()])
    dumps = {rank_of(path): flight_recorder.read_dump(data) for path, data in contents.items()}
    return _by_name(relative_perf_scores(flight_recorder.own_times(dumps)))


def _inspector_scores(texts: Sequence[str]) -> dict[str, float]:
    """Return the wait of each GPU by the longest wait: the slowest GPU waits least for others."""
    samples = [sample for text in texts for sample in nccl_inspector.read_samples(text)]
    waits = nccl_inspector.waits_s(samples)
    longest_s = max(waits.values(), default=0.0)
    return {gpu: wait_s / longest_s if longest_s else 1.0 for gpu, wait_s in waits.items()}


def rank_of(path: Path) -> int:
    """Return the rank that ends the name of a dump. Raises ValueError."""
    match = RANK.search(path.stem if path.suffix in (".json", ".pickle", ".pkl") else path.name)
    if match is None:
        raise ValueError(
            f"flight recorder: {path.name}; no rank in its name; it ends a name such as trace_3"
        )
    return int(match[1])


def _by_name(scores: dict[int, float]) -> dict[str, float]:
    return {str(rank): score for rank, score in scores.items()}
