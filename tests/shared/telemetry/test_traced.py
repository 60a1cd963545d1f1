"""A tenant's view of traces: its own spans, and no way to anybody else's."""

from __future__ import annotations

from shared.telemetry.traced import SpanLink, TracedSpan, spans_visible_to

OWN, ELSE = "a" * 32, "b" * 32


def span(trace_id: str, tenant: str = "", *links: str, job: str = "j1") -> TracedSpan:
    fields = {"tenant.id": tenant, "job.id": job} if tenant else {"job.id": job}
    return TracedSpan(
        trace_id,
        "1" * 16,
        "",
        "place",
        "placement",
        1,
        2,
        dict(fields),
        tuple(SpanLink(to, "2" * 16) for to in links),
    )


def test_spans_of_others_in_a_trace_that_a_tenant_chose_are_not_shown() -> None:
    own = [span(OWN, "ada"), span(OWN)]
    foreign = [span(OWN, "bob", job="j2"), span(OWN, job="j2")]
    assert spans_visible_to([*own, *foreign], "ada", "j1") == own


def test_a_link_to_the_job_that_one_made_room_for_is_not_shown() -> None:
    spans = [span(OWN, "ada"), span("c" * 32, "ada", OWN, ELSE)]
    assert spans_visible_to(spans, "ada", "j1")[1].links == (SpanLink(OWN, "2" * 16),)
