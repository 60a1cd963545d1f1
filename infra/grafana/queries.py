"""Parts of the PromQL queries that the dashboards share."""

from __future__ import annotations

from infra.grafana.panels import Query

RANGE = "$__rate_interval"
POOL = 'pool=~"$pool"'
POOLS = (("pool", "label_values(berth_jobs, pool)"),)


def q(expression: str, legend: str = "") -> Query:
    return Query(expression, legend)


def rate(name: str, by: str, where: str = "") -> str:
    """Return the PromQL rate of a counter, per second."""
    return f"sum by ({by}) (rate({name}{{{where}}}[{RANGE}]))"


def quantile(share: float, histogram: str, by: str, where: str = "") -> str:
    buckets = f"rate({histogram}_bucket{{{where}}}[{RANGE}])"
    return f"histogram_quantile({share}, sum by ({by}, le) ({buckets}))"


def p50_and_p99(histogram: str) -> tuple[Query, Query]:
    """Return two quantiles of the times that a service measures."""
    return (
        q(quantile(0.5, histogram, "service"), "p50"),
        q(quantile(0.99, histogram, "service"), "p99"),
    )
