"""A year of one busy pool with LLM endpoints: disk per day and topic, starts, memory, Postgres.

Some days are played by the live deciders with real ledgers; the rest is reckoned from them. `--out
DIR` writes a page.
"""

from __future__ import annotations

import time

from benchmarks.parts.command import Json, serve
from benchmarks.parts.result import finish
from benchmarks.parts.year.figures import (
    arrays_of,
    disk_of,
    rankings_of,
    starts_of,
    tables_of,
    verified,
)
from benchmarks.parts.year.goals import goals_of
from benchmarks.parts.year.jobs import TRACE, PlayedPool, play_pool
from benchmarks.parts.year.options import YearOptions, check_options
from benchmarks.parts.year.page import render_page
from benchmarks.parts.year.requests import play_endpoint
from shared.process.progress import ReportLine
from simulator.engine.publishing import publish


async def run(options: YearOptions, report_line: ReportLine) -> Json:
    """Return the figures of a day and a year. Raises ValueError for options without work."""
    check_options(options)
    began_s = time.process_time()
    report_line(f"playing {options.days:g} days of {options.jobs_per_day:,} jobs")
    pool = play_pool(options.days, options.jobs_per_day)
    publish(pool.broker)
    report_line(f"playing {options.llm_hours:g} hours of an endpoint")
    endpoint, requests = play_endpoint(options.llm_hours, options.llm_per_s)
    publish(endpoint)
    result: Json = {
        "bench": "year",
        "days_played": options.days,
        **await disk_of(options, pool.broker, endpoint, report_line),
        **rankings_of(options, report_line),
        **arrays_of(options, report_line),
        **await starts_of(options, pool.broker, endpoint, report_line),
        **await tables_of(options, pool.broker, endpoint, report_line),
        **await verified(options, pool.broker, report_line),
        "settings": settings_of(options, pool, requests),
    }
    result["goals"] = goals_of(result)
    return finish(result, began_s, options.out, render_page)


def settings_of(options: YearOptions, pool: PlayedPool, requests: int) -> dict[str, object]:
    return {
        "trace": TRACE,
        "load": pool.load,
        "jobs": pool.jobs,
        "jobs_per_day": options.jobs_per_day,
        "nodes": pool.nodes,
        "endpoints": options.endpoints,
        "llm_per_s": options.llm_per_s,
        "llm_hours": options.llm_hours,
        "llm_requests": requests,
    }


if __name__ == "__main__":
    serve(run, YearOptions, __doc__ or "")
