"""Figures of a day and a year, from the ledgers of what was played."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping

from benchmarks.parts.command import Json
from benchmarks.parts.year.arrays import array_megabytes
from benchmarks.parts.year.installed import installed_batches
from benchmarks.parts.year.jobs import play_pool
from benchmarks.parts.year.options import YEAR_DAYS, YearOptions
from benchmarks.parts.year.read_models import HISTORY_DAYS, joined, project_all, yearly
from benchmarks.parts.year.segments import COMPRESSED, UNCOMPRESSED, KeptBytes, kept_bytes
from benchmarks.parts.year.starting import DECIDERS, MeasuredStart, measure_start
from benchmarks.parts.year.volumes import ranking_volumes, topic_bytes
from infra.machine.owned_folders import scratch_folder
from shared.bus.logs.memory import MemoryBroker
from shared.ledger.partition import TP
from shared.process.progress import ReportLine
from simulator.engine.lane import LANE
from simulator.engine.publishing import verify_ledgers
from simulator.engine.recording import dump

GB = 1e9
LEAST_GB = 0.1
"""Of a table that is shown."""


async def disk_of(
    options: YearOptions, pool: MemoryBroker, endpoint: MemoryBroker, report_line: ReportLine
) -> Json:
    """Return GB a day of each topic, and of all; all endpoints are taken as the one played.

    `by_form` has what Kafka kept with and without compression; `by_ledger` is the first of both.
    Without Kafka it has the bytes of the records.
    """
    if options.skip_kafka:
        values: KeptBytes = {UNCOMPRESSED: dict(topic_bytes(pool))}
        requests: KeptBytes = {UNCOMPRESSED: dict(topic_bytes(endpoint))}
    else:
        report_line("writing what was played to Kafka")
        values = await kept_bytes(installed_batches(pool))
        requests = await kept_bytes(installed_batches(endpoint))
    by_form = {form: _per_day(options, own, requests[form]) for form, own in values.items()}
    kept = by_form.get(COMPRESSED, by_form[UNCOMPRESSED])
    return {
        "gb_per_day": round(sum(kept.values()), 4),
        "by_ledger": kept,
        "by_form": by_form,
        "measured": not options.skip_kafka,
    }


def _per_day(
    options: YearOptions, pool: Mapping[str, float], endpoint: Mapping[str, float]
) -> dict[str, float]:
    """Return GB a day by topic."""
    per_day = {name: volume / options.days for name, volume in pool.items()}
    times = options.endpoints * 24 / options.llm_hours
    for name, volume in endpoint.items():
        per_day[name] = per_day.get(name, 0.0) + volume * times
    return {name: round(volume / GB, 5) for name, volume in sorted(per_day.items())}


def rankings_of(options: YearOptions, report_line: ReportLine) -> Json:
    """Return bytes per ranking of one workload, recorded as changes and as whole orders."""
    report_line(f"playing {options.rankings_jobs:,} jobs with changes and with whole rankings")
    days = options.rankings_jobs / options.jobs_per_day
    forms = {"changes": True, "whole": False}
    return {
        "rankings_jobs": options.rankings_jobs,
        "rankings": {
            form: ranking_volumes(
                play_pool(days, options.jobs_per_day, rank_changes=is_changes).broker
            )
            for form, is_changes in forms.items()
        },
    }


def arrays_of(options: YearOptions, report_line: ReportLine) -> Json:
    """Return the MB of one array, with its program recorded once and with each of its jobs."""
    report_line(f"submitting an array of {options.array_jobs:,} jobs in both ways")
    megabytes = array_megabytes(options.array_jobs, options.array_kib)
    return {"array_jobs": options.array_jobs, "array_kib": options.array_kib, "array_mb": megabytes}


async def starts_of(
    options: YearOptions, pool: MemoryBroker, endpoint: MemoryBroker, report_line: ReportLine
) -> Json:
    """Return starts of each decider over what was played, and of a year from 0."""
    starts: dict[str, MeasuredStart] = {}
    years: dict[str, float] = {}
    rest = round((YEAR_DAYS - options.days) * options.jobs_per_day)
    ended_jobs = options.ended_jobs or max(rest, 0)
    with scratch_folder("bench-year") as folder:
        for ledger in DECIDERS:
            report_line(f"starting {ledger} over its ledger")
            is_llm = ledger == "throttle"
            broker = endpoint if is_llm else pool
            dump(broker, folder)
            path = folder / f"{TP(ledger, LANE).key}.jsonl"
            starts[ledger] = await measure_start(ledger, path, ended_jobs)
            days = options.llm_hours / 24 if is_llm else options.days
            years[ledger] = round(starts[ledger]["zero_s"] * YEAR_DAYS / days, 1)
    return {
        "start_s_checkpoint": max(
            state["checkpoint_s"]
            for start in starts.values()
            for state in (start, start.get("year", start))
        ),
        "start_s_zero": max(years.values()),
        "start_s_zero_by_service": years,
        "rss_mib": {
            ledger: start.get("year", start)["rss_mib"] for ledger, start in starts.items()
        },
        "starts": starts,
    }


async def tables_of(
    options: YearOptions, pool: MemoryBroker, endpoint: MemoryBroker, report_line: ReportLine
) -> Json:
    """Return the size of Postgres after a year, by table, and the projector's seconds."""
    if options.skip_postgres:
        return {"postgres_gb": None}
    report_line("projecting into Postgres")
    days = {"pool": options.days, "endpoint": options.llm_hours / 24 / max(options.endpoints, 1)}
    grown: Counter[str] = Counter()
    seconds = 0.0
    with scratch_folder("bench-year") as folder:
        for name, broker in (("pool", pool), ("endpoint", endpoint)):
            sizes, took_s = await project_all(joined({name: broker}), folder / name)
            for table, size in sizes.items():
                grown[table] += round(size / days[name])
            seconds += took_s
    by_table = {table: round(size / GB, 2) for table, size in yearly(grown).items()}
    histories = yearly(grown, days=HISTORY_DAYS, tables=["job_event"])
    records = yearly(grown, days=HISTORY_DAYS)
    return {
        "postgres_gb": round(sum(yearly(grown).values()) / GB, 2),
        "postgres_gb_by_table": {t: gb for t, gb in sorted(by_table.items()) if gb >= LEAST_GB},
        "postgres_gb_with_retention": round(sum(histories.values()) / GB, 2),
        "postgres_gb_with_records": round(sum(records.values()) / GB, 2),
        "projected_s": round(seconds, 1),
    }


async def verified(options: YearOptions, pool: MemoryBroker, report_line: ReportLine) -> Json:
    """Return the seconds of `berth verify` over the days of the pool, and of a year."""
    report_line("verifying the pool's days")
    began_s = time.perf_counter()
    report = await verify_ledgers(pool)
    verify_s = time.perf_counter() - began_s
    return {
        "verify_s": round(verify_s, 1),
        "verify_s_year": round(verify_s * YEAR_DAYS / options.days, 1),
        "violations": len(report.violations),
    }
