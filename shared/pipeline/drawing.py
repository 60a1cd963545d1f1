"""Draws a timeline as SVG: a row per stage, a box per operation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shared.pipeline.model import Kind
from shared.pipeline.schedules import PlannedSchedule

COLOURS: dict[Kind, str] = {"F": "#4c78a8", "B": "#f2a541", "W": "#72b079"}
MEANINGS: dict[Kind, str] = {"F": "forward", "B": "backward, input", "W": "backward, weights"}
WIDTH, LEFT, ROW, GAP = 1200, 64, 22, 44
NUMBERED_FROM = 12
"""Width of a box, in pixels, from which it holds the number of its micro-batch."""


def draw(schedules: Sequence[PlannedSchedule]) -> str:
    """Return one picture of all schedules, on one scale of time."""
    longest = max(schedule.timeline.makespan for schedule in schedules)
    stages = len(schedules[0].orders)
    block = GAP + ROW * stages
    height = block * len(schedules) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" height="{height}"'
        f' font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for index, schedule in enumerate(schedules):
        parts += _schedule(schedule, index * block, WIDTH / longest)
    parts += _legend(height - 16)
    return "\n".join((*parts, "</svg>", ""))


def _schedule(schedule: PlannedSchedule, top: float, scale: float) -> Iterator[str]:
    title = f"{schedule.name}: {schedule.timeline.makespan:g}"
    yield f'<text x="{LEFT}" y="{top + 30}" font-weight="bold">{title}</text>'
    for stage, spans in enumerate(schedule.timeline.spans):
        y = top + GAP - 6 + stage * ROW
        yield f'<text x="4" y="{y + 14}">stage {stage}</text>'
        for span in spans:
            kind, microbatch = span.operation
            x, width = LEFT + span.start * scale, (span.end - span.start) * scale
            yield (
                f'<rect x="{x:.2f}" y="{y}" width="{width:.2f}" height="{ROW - 3}"'
                f' fill="{COLOURS[kind]}" stroke="white" stroke-width="0.5">'
                f"<title>{kind}{microbatch} {span.start:g} - {span.end:g}</title></rect>"
            )
            if width >= NUMBERED_FROM:
                yield (
                    f'<text x="{x + width / 2:.2f}" y="{y + 14}" text-anchor="middle"'
                    f' font-size="9">{microbatch}</text>'
                )


def _legend(y: float) -> Iterator[str]:
    for index, (kind, colour) in enumerate(COLOURS.items()):
        x = LEFT + 170 * index
        yield f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{colour}"/>'
        yield f'<text x="{x + 18}" y="{y}">{kind}: {MEANINGS[kind]}</text>'
