"""The waterfall, letter by letter."""

from __future__ import annotations

from shared.telemetry.traced import SpanLink, TracedSpan
from shared.telemetry.waterfall import waterfall

MS = 1_000_000
ORIGIN_NS = 1_700_000_000_000 * MS


def span(
    name: str,
    span_id: str,
    parent: str,
    at_ms: float,
    took_ms: float,
    service: str = "placement",
    trace_id: str = "a" * 32,
    links: tuple[SpanLink, ...] = (),
    **fields: str | float,
) -> TracedSpan:
    start_ns = ORIGIN_NS + int(at_ms * MS)
    attributes = {"event.id": "x", **{f"decision.{key}": value for key, value in fields.items()}}
    end_ns = start_ns + int(took_ms * MS)
    return TracedSpan(trace_id, span_id, parent, name, service, start_ns, end_ns, attributes, links)


JOB = [
    span("start", "f", "d", 95, 5),
    span("submit", "1", "", 0, 2, "gateway"),
    span("admit", "a", "1", 10, 20, "admission"),
    span("rank", "b", "a", 40, 10, "priority", score=3.5, policy="fcfs"),
    span("enqueue", "c", "a", 35, 10),
    span("hold", "e", "c", 45, 5, reason="no_capacity", short_gpus=8.0),
    span("place", "d", "c", 60, 20, policy="best_fit"),
    span(
        "preempt",
        "9",
        "",
        42_000,
        12,
        trace_id="b" * 32,
        links=(SpanLink("a" * 32, "d"),),
        reason="higher_class",
    ),
    span("finish", "8", "", 90_000, 12, trace_id="c" * 32, links=(SpanLink("d" * 32, "7"),)),
]

GOLDEN = """\
trace aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa  7 spans  100.0 ms
gateway    submit                 0.0 ms     2.0 ms |█                       |
admission    admit               10.0 ms    20.0 ms |  █████                 |
placement      enqueue           35.0 ms    10.0 ms |        ██              |
placement        hold            45.0 ms     5.0 ms |          █             | reason=no_capacity short_gpus=8
placement        place           60.0 ms    20.0 ms |              █████     | policy=best_fit
placement          start         95.0 ms     5.0 ms |                      █ |
priority       rank              40.0 ms    10.0 ms |         ██             | policy=fcfs score=3.5
later decisions
placement  preempt               +42.0 s reason=higher_class <- placement place
placement  finish                +90.0 s <- trace dddddddddddddddddddddddddddddddd"""  # noqa: E501


def test_a_job_is_rendered_as_a_waterfall() -> None:
    assert "\n".join(waterfall(JOB)) == GOLDEN


def test_order_and_repeats_of_the_input_do_not_matter() -> None:
    assert waterfall([*reversed(JOB), *JOB]) == waterfall(JOB)


def test_no_spans_say_so() -> None:
    [line] = waterfall([])
    assert line.startswith("no spans")


def test_a_missing_parent_makes_a_root_and_a_ring_of_parents_ends() -> None:
    lost = span("place", "1", "gone", 0, 1)
    ring = [span("admit", "2", "3", 1, 1), span("rank", "3", "2", 2, 1)]
    lines = waterfall([lost, *ring])
    assert len(lines) == 4
    assert [line.split()[1] for line in lines[1:]] == ["place", "admit", "rank"]


def test_no_control_character_reaches_the_terminal() -> None:
    lines = waterfall([span("pl\x1b[31mace", "1", "", 0, 1, reason="a\nb\x07")])
    assert len(lines) == 2
    assert all(line.isprintable() for line in lines)


def test_a_later_decision_may_stand_alone() -> None:
    lines = waterfall([span("finish", "1", "", 0, 0)])
    assert lines[1].startswith("placement  finish")
