"""A benchmark in this tree and in that of another commit, in turn: the ratio of each figure.

`make compare BASE=COMMIT` runs it. Both trees use the packages of this environment and run on this
machine, one after the other, in an order that changes with each round; a first round, in which the
kernel is compiled, is not counted. A ratio is this tree's figure over the base's, round by round:
its median with the least and the largest. `process.cpu_s` is the CPU time of the whole process.
Where other programs run, figures of CPU time alone say something.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.parts.command import Json, serve
from benchmarks.parts.compare import trees
from benchmarks.parts.compare.ratios import Ratio, figures_of, ratios
from benchmarks.parts.rounding import rounded
from shared.process.progress import ReportLine


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """`benches` and `options` are separated by spaces; the options go to each benchmark."""

    base: str = ""
    benches: str = "simulator placement"
    options: str = ""
    rounds: int = 3


async def run(options: CompareOptions, report_line: ReportLine) -> Json:
    """Return the ratios of each benchmark's figures."""
    if options.rounds < 1:
        raise ValueError(f"rounds: {options.rounds}, must be at least 1")
    base = await trees.unpack_commit(options.base)
    results: Json = {}
    for bench in options.benches.split():
        rows = await compare(base, bench, options, report_line)
        results[bench] = [rounded(row, 4) for row in rows]
        for line in table(rows):
            report_line(line)
    return {
        "bench": "compare",
        "base": base.name,
        "rounds": options.rounds,
        "options": options.options,
        "ratios": results,
    }


async def compare(
    base: Path, bench: str, options: CompareOptions, report_line: ReportLine
) -> list[Ratio]:
    """Run the benchmark in both trees, round by round."""
    arguments = shlex.split(options.options)
    figures: dict[Path, list[dict[str, float]]] = {base: [], trees.ROOT: []}
    for number in range(1 + options.rounds):
        report_line(f"{bench}: round {number} of {options.rounds}")
        order = [base, trees.ROOT] if number % 2 else [trees.ROOT, base]
        for tree in order:
            result = await trees.run_bench(tree, bench, arguments)
            if number:
                figures[tree].append(dict(figures_of(result)))
    return ratios(figures[base], figures[trees.ROOT])


def table(rows: Sequence[Ratio]) -> list[str]:
    """Return the rows as lines of columns."""
    width = max((len(row.figure) for row in rows), default=0)
    names = ("base", "own", "own / base", "least", "largest")
    lines = [f"{'figure':<{width}}" + "".join(f"{name:>12}" for name in names)]
    for row in rows:
        figures = f"{row.base:>12.5g}{row.own:>12.5g}{row.ratio:>12.3f}"
        lines.append(f"{row.figure:<{width}}{figures}{row.least:>12.3f}{row.largest:>12.3f}")
    return lines


if __name__ == "__main__":
    serve(run, CompareOptions, __doc__ or "")
