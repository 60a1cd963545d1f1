"""Figures of the comparison with the scheduler of Kubernetes, their aims, and the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.parts.command import Json
from benchmarks.parts.goals import met
from benchmarks.parts.markdown import table
from benchmarks.parts.percentiles import percentile

DEFAULT, UNLIMITED, BERTH = "kube-scheduler", "kube-scheduler-unlimited", "berth"
KINDS_SHOWN = 8
FIGURES = {
    "bound_per_s": "pods bound per second, from the first creation to the last binding",
    "created_per_s": "pods created per second meanwhile, by the benchmark",
    "bound_p50_s": "s from the creation of a pod until it has a node, median",
    "bound_p99_s": "the same, 99th percentile",
    "requests_per_pod": "requests to the API per pod until all were bound",
    "requests_per_pod_at_end": "further requests per pod until all were removed",
    "cpu_ms_per_pod": "ms of CPU per pod, of all processes of the scheduler",
    "api_cpu_ms_per_pod": "ms of CPU per pod, of API server and etcd",
}
CONTENDED = {
    "whole": "gangs of which all pods have a node",
    "half_started": "gangs of which only some have: each waits for nodes that the other holds",
    "gpus_stranded": "GPUs that such gangs hold, and cannot use",
}


def speed_figures(
    *,
    pods: int,
    bound: int,
    created_s: float,
    last_s: float,
    waits_s: list[float],
    cpu_s: tuple[float, float],
    requests: Counter[str],
    requests_after: Counter[str],
) -> Json:
    """Return the figures of gangs that all fit; CPU is that of the scheduler and of the API."""
    return {
        "pods": pods,
        "bound": bound,
        "bound_per_s": round(bound / last_s, 1) if last_s else 0.0,
        "created_per_s": round(pods / created_s, 1),
        "bound_p50_s": round(percentile(waits_s, 0.5), 2),
        "bound_p99_s": round(percentile(waits_s, 0.99), 2),
        "requests_per_pod": round(requests.total() / pods, 2),
        "requests_per_pod_at_end": round(requests_after.total() / pods, 2),
        "cpu_ms_per_pod": round(1000 * cpu_s[0] / pods, 2),
        "api_cpu_ms_per_pod": round(1000 * cpu_s[1] / pods, 2),
        "requests": dict(requests.most_common(KINDS_SHOWN)),
        "requests_at_end": dict(requests_after.most_common(KINDS_SHOWN)),
    }


def gang_figures(bound: Mapping[str, int], workers: int, gpus: int) -> Json:
    """Return what became of gangs that compete; `bound` has the pods of each with a node."""
    half = [count for count in bound.values() if 0 < count < workers]
    return {
        "workers": workers,
        "bound": dict(bound),
        "whole": sum(count == workers for count in bound.values()),
        "half_started": len(half),
        "gpus_stranded": sum(half) * gpus,
    }


def judge(systems: Mapping[str, Any]) -> list[Json]:
    """Return a row per aim; one whose figures were not measured is not met."""
    own: Mapping[str, Any] = systems.get(BERTH, {})
    contended: Mapping[str, Any] = own.get("contended", {})
    speed, least = own.get("bound_per_s"), systems.get(DEFAULT, {}).get("bound_per_s")
    is_whole = bool(own) and own["bound"] == own["pods"]
    rows: list[tuple[str, object, str, bool]] = [
        (
            "pods bound per second",
            speed,
            f"at least as many as {DEFAULT}: {least}",
            bool(is_whole and speed is not None and least is not None and speed >= least),
        ),
        _none("gangs half-started", contended, "half_started"),
        _none("GPUs stranded", contended, "gpus_stranded"),
    ]
    names = ("aim", "measured", "requested", "met")
    return [dict(zip(names, row, strict=True)) for row in rows]


def _none(name: str, contended: Mapping[str, Any], figure: str) -> tuple[str, object, str, bool]:
    """Return the row of an aim of 0, which one that places nothing does not meet."""
    measured = contended.get(figure)
    return name, measured, "0", measured == 0 and contended["whole"] > 0


def render(result: Mapping[str, Any]) -> str:
    """Return the page for docs/results."""
    systems: Mapping[str, Any] = result["systems"]
    aims = (
        (row["aim"], row["measured"], row["requested"], met(row["met"])) for row in result["aims"]
    )
    workers = next(iter(systems.values()))["contended"]["workers"] if systems else 0
    return "\n".join(
        (
            "# The same pods by kube-scheduler and by Berth\n",
            f"By `berth bench kubernetes` on {result['cores']} cores, which all processes share: a"
            f" real API server and etcd (Kubernetes {result['kubernetes']}), {result['nodes']}"
            f" nodes of {result['gpus']} GPUs that are objects alone, with kwok in place of their"
            " kubelets, and the benchmark's own client. Each system has a cluster of its own, one"
            " after the"
            f" other in one run; load of the machine before: {result['load_1m']}. `{DEFAULT}` has"
            f" its default settings, by which it sends 50 requests a second; `{UNLIMITED}` may send"
            f" 5,000. Berth is all services of a stack ({result['broker']} broker) with the"
            " executor of this cluster, and places the same pods by the name of their scheduler:"
            " each gang is a job. Gang scheduling by a Workload of Kubernetes is off, as it is by"
            " default, and no plugin for gangs is installed.\n",
            table(("aim", "Berth", "requested", ""), aims),
            f"{result['gangs']} gangs of {result['workers']} pods of one GPU, created by one client"
            " as fast as it can:\n",
            _figures(FIGURES, systems, lambda one: one),
            f"Two gangs of {workers} pods of {result['gpus']} GPUs each, created in turn: either"
            " fits, both do not.\n",
            _figures(CONTENDED, systems, lambda one: one["contended"]),
            "Requests until all were bound, by kind:\n",
            table(("system", "requests"), _requests(systems)),
        )
    )


def _figures(names: Mapping[str, str], systems: Mapping[str, Any], part: Any) -> str:
    rows = (
        (f"`{name}`", *(part(one)[name] for one in systems.values()), words)
        for name, words in names.items()
    )
    return table(("figure", *(f"`{name}`" for name in systems), ""), rows)


def _requests(systems: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    return [
        (f"`{name}`", ", ".join(f"{kind}: {count}" for kind, count in one["requests"].items()))
        for name, one in systems.items()
    ]
