"""The main figures of all services as one self-contained HTML page without scripts.

Gauges are current, counters run since the start of each process; Prometheus has the history. A
service that does not answer is listed, and its figures are missing rather than zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

from shared.telemetry.metric_names import METRICS, MetricName
from shared.telemetry.scrape import Scraped, quantile

REFRESH_S = 5
STYLE = """
body{font:14px/1.45 system-ui,sans-serif;margin:1.5rem auto;max-width:70rem;padding:0 1rem;
color:#1c2430;background:#fff}h1{font-size:1.3rem}h2{font-size:1rem;margin:1.4rem 0 .3rem}
table{border-collapse:collapse;width:100%}th,td{text-align:right;padding:.25rem .6rem;
border-bottom:1px solid #e3e7ec;font-variant-numeric:tabular-nums}th{font-weight:600;color:#5a6675}
th.text,td.text{text-align:left}th[title]{cursor:help}.bad{color:#b3261e;font-weight:600}
p{color:#5a6675;margin:.3rem 0}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}th,p{color:#a5afbb}
th,td{border-color:#333}.bad{color:#ff8a80}}
"""

Row = Sequence[str]


class Column(NamedTuple):
    """A column of a table; one of text shows no metric."""

    head: str
    metric: MetricName | None = None
    is_text: bool = False

    @property
    def cell(self) -> str:
        return "td class=text" if self.is_text else "td"

    @property
    def th(self) -> str:
        """Return the head, with the description of its metric as a tooltip."""
        text = " class=text" if self.is_text else ""
        about = f' title="{escape(METRICS[self.metric].text)}"' if self.metric else ""
        return f"<th{text}{about}>{escape(self.head)}</th>"


def _text(head: str) -> Column:
    return Column(head, is_text=True)


def render_page(services: Sequence[Scraped], at: str) -> str:
    """Return the HTML; `at` is the time of the scrape in readable form."""
    failed = [service for service in services if service.problem]
    summary = f"{len(services) - len(failed)} of {len(services)} services answer"
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>Berth: {summary}</title>",
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="refresh" content="{REFRESH_S}"><style>{STYLE}</style></head><body>',
        f"<h1>Berth</h1><p>{escape(at)}; {summary}. Counters run since each process started.</p>",
        *(
            f'<p class="bad">{escape(service.name)} {escape(service.problem)}</p>'
            for service in failed
        ),
        *_sections([service for service in services if not service.problem]),
        "</body></html>",
    ]
    return "\n".join(parts)


def _sections(services: Sequence[Scraped]) -> Iterator[str]:
    yield _table("Pools", POOL_HEAD, _pools(services), "no pools")
    yield _table("Agents", AGENT_HEAD, _agents(services), "")
    yield _table("Tenants", TENANT_HEAD, _tenants(services), "no tenant has used GPUs")
    yield _table("LLM endpoints", LLM_HEAD, _endpoints(services), "")
    yield _table("Services", SERVICE_HEAD, map(_service, services), "no service answers")


def _table(title: str, head: Sequence[Column], rows: Iterable[Row], without: str) -> str:
    """Return a table; without rows the text `without`, or nothing if that is empty."""
    body = "".join(f"<tr>{_cells(head, row)}</tr>" for row in rows)
    if not body:
        return f"<h2>{title}</h2><p>{without}</p>" if without else ""
    heads = "".join(column.th for column in head)
    return f"<h2>{title}</h2><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _cells(head: Sequence[Column], row: Row) -> str:
    pairs = zip(head, row, strict=True)
    return "".join(f"<{column.cell}>{escape(text)}</td>" for column, text in pairs)


POOL_HEAD = (
    _text("pool"),
    Column("GPUs", "berth_gpus"),
    Column("used", "berth_gpu_utilization_ratio"),
    Column("fragmented", "berth_fragmentation_ratio"),
    Column("waiting", "berth_jobs"),
    Column("longest wait", "berth_queue_oldest_wait_seconds"),
    Column("running", "berth_jobs"),
    Column("deferred", "berth_deferred_jobs"),
    Column("round due for", "berth_undecided_seconds"),
    Column("fairness gap", "berth_fairness_gap_ratio"),
    Column("suspected nodes", "berth_nodes_suspected"),
    Column("open faults", "berth_faults_open"),
    Column("lost nodes", "berth_nodes"),
)


def _pools(services: Sequence[Scraped]) -> Iterator[Row]:
    merged = _Merged(services)
    for pool in merged.values_of("berth_jobs", "pool"):
        yield (
            pool,
            _number(merged.sum("berth_gpus", pool=pool)),
            _share(merged.sum("berth_gpu_utilization_ratio", pool=pool)),
            _share(merged.sum("berth_fragmentation_ratio", pool=pool)),
            _number(merged.sum("berth_jobs", pool=pool, phase="waiting")),
            _duration(merged.sum("berth_queue_oldest_wait_seconds", pool=pool)),
            _number(merged.sum("berth_jobs", pool=pool, phase="running")),
            _number(merged.sum("berth_deferred_jobs", pool=pool)),
            _duration(merged.sum("berth_undecided_seconds", pool=pool)),
            _share(merged.sum("berth_fairness_gap_ratio", pool=pool)),
            _number(merged.sum("berth_nodes_suspected", pool=pool)),
            _number(merged.sum("berth_faults_open", pool=pool)),
            _number(merged.sum("berth_nodes", pool=pool, state="lost")),
        )


AGENT_HEAD = (
    _text("pool"),
    _text("agent's version"),
    Column("connected nodes", "berth_agent_sessions"),
)


def _agents(services: Sequence[Scraped]) -> Iterator[Row]:
    merged = _Merged(services)
    for labels, nodes in merged.series("berth_agent_sessions"):
        yield labels["pool"], labels["version"], _number(nodes)


TENANT_HEAD = (
    _text("tenant"),
    _text("pool"),
    Column("share of use", "berth_tenant_use_ratio"),
    Column("share of weight", "berth_tenant_weight_ratio"),
)


def _tenants(services: Sequence[Scraped]) -> Iterator[Row]:
    merged = _Merged(services)
    for labels, use in merged.series("berth_tenant_use_ratio"):
        tenant, pool = labels["tenant"], labels["pool"]
        weight = merged.sum("berth_tenant_weight_ratio", pool=pool, tenant=tenant)
        yield tenant, pool, _share(use), _share(weight)


LLM_HEAD = (
    _text("endpoint"),
    Column("waiting", "berth_llm_requests"),
    Column("longest wait", "berth_llm_oldest_wait_seconds"),
    Column("running", "berth_llm_requests"),
    Column("capacity used", "berth_llm_batch_ratio"),
    Column("tokens/s", "berth_llm_tokens_per_second"),
    Column("service gap, tokens", "berth_llm_service_gap_tokens"),
)


def _endpoints(services: Sequence[Scraped]) -> Iterator[Row]:
    merged = _Merged(services)
    for name in merged.values_of("berth_llm_requests", "endpoint"):
        yield (
            name,
            _number(merged.sum("berth_llm_requests", endpoint=name, state="waiting")),
            _duration(merged.sum("berth_llm_oldest_wait_seconds", endpoint=name)),
            _number(merged.sum("berth_llm_requests", endpoint=name, state="running")),
            _share(merged.sum("berth_llm_batch_ratio", endpoint=name)),
            _number(merged.sum("berth_llm_tokens_per_second", endpoint=name)),
            _number(merged.sum("berth_llm_service_gap_tokens", endpoint=name)),
        )


SERVICE_HEAD = (
    _text("service"),
    Column("decisions", "berth_decisions"),
    Column("decision p99", "berth_decision_seconds"),
    Column("lag, records", "berth_consumer_lag_records"),
    Column("behind by", "berth_behind_seconds"),
    Column("loop stall p99", "berth_event_loop_stall_seconds"),
    Column("dead letters", "berth_dead_letters"),
    Column("ignored records", "berth_ignored_records"),
    Column("dropped spans", "berth_spans_dropped"),
    Column("memory"),
    Column("CPU time"),
)


def _service(service: Scraped) -> Row:
    return (
        service.name,
        _number(service.total("berth_decisions_total")),
        _bound(quantile(service, "berth_decision_seconds", 0.99)),
        _number(service.maximum("berth_consumer_lag_records")),
        _duration(service.maximum("berth_behind_seconds")),
        _bound(quantile(service, "berth_event_loop_stall_seconds", 0.99)),
        _number(service.total("berth_dead_letters_total") or 0),
        _number(service.total("berth_ignored_records_total") or 0),
        _number(service.total("berth_spans_dropped_total") or 0),
        _bytes(service.total("process_resident_memory_bytes")),
        _duration(service.total("process_cpu_seconds_total")),
    )


class _Merged:
    """The series of all services together."""

    def __init__(self, services: Sequence[Scraped]) -> None:
        self._services = services

    def series(self, name: str) -> list[tuple[dict[str, str], float]]:
        series = [
            (dict(labels), value)
            for service in self._services
            for labels, value in service.series(name)
        ]
        return sorted(series, key=lambda pair: sorted(pair[0].items()))

    def values_of(self, name: str, label: str) -> list[str]:
        return sorted({labels[label] for labels, _ in self.series(name)})

    def sum(self, name: str, **selected: str) -> float | None:
        """Return the sum of the series with these labels; None, not zero, if there are none."""
        values = [v for labels, v in self.series(name) if selected.items() <= labels.items()]
        return sum(values) if values else None


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == round(value) or value >= 100 else f"{value:.1f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def _bound(seconds: float | None) -> str:
    """Return the bound of the bucket that contains the quantile."""
    if seconds is None:
        return "–"
    return "> 10 s" if seconds == float("inf") else f"≤ {_duration(seconds)}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _bytes(value: float | None) -> str:
    return "–" if value is None else f"{value / 2**20:.0f} MiB"
