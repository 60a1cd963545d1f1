"""A round as it would be in a pool of three GPU types, with measured throughputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow.parquet as pq

from services.placement.core.solver.instance import GangRequest, Instance, NodeClass
from simulator.workload.errors import TraceError
from simulator.workload.locate import locate

TYPES = ("k80", "p100", "v100")

Table = list[Mapping[str, float]]
"""A row per model: GPU type -> speed relative to the model's best type."""


def read_throughputs() -> Table | None:
    """Return Gavel's single-GPU throughputs (OSDI '20, MIT licence); None without the traces."""
    try:
        rows = pq.read_table(locate("gavel_throughputs")).to_pylist()
    except TraceError:
        return None
    by_model: dict[str, dict[str, float]] = {}
    for row in rows:
        is_alone = row["coloc_type"] is None and row["scale_factor"] == 1
        if is_alone and row["gpu_type"] in TYPES and row["tput"]:
            by_model.setdefault(row["job_type"], {})[row["gpu_type"]] = row["tput"]
    return [
        {name: speed / max(speeds.values()) for name, speed in speeds.items()}
        for _, speeds in sorted(by_model.items())
        if len(speeds) == len(TYPES)
    ]


def mix_types(instance: Instance, table: Table) -> Instance:
    """Return the round with a type for every node and a model for every job.

    Greedy's plan, which depends on neither, stays the same.
    """
    classes: list[NodeClass] = []
    split: list[list[tuple[int, str]]] = []
    for number, cls in enumerate(instance.classes):
        parts: dict[str, list[int]] = {}
        for at in range(len(cls.nodes)):
            parts.setdefault(TYPES[(number + at) % len(TYPES)], []).append(at)
        split.append([])
        for name, members in parts.items():
            split[-1].append((len(classes), name))
            classes.append(replace(cls, nodes=tuple(cls.nodes[at] for at in members)))
    requests = tuple(
        with_model(request, table[index * 7 % len(table)], split)
        for index, request in enumerate(instance.requests)
    )
    victims = tuple(
        replace(victim, request=with_model(victim.request, dict.fromkeys(TYPES, 1.0), split))
        for victim in instance.victims
    )
    return replace(instance, classes=tuple(classes), requests=requests, victims=victims)


def with_model(
    request: GangRequest, speeds: Mapping[str, float], split: list[list[tuple[int, str]]]
) -> GangRequest:
    """Return the request with the classes of each type and the speeds of the model on them."""
    pairs = [
        (cls, max(1, round(speed * speeds[name])))
        for old, speed in zip(request.classes, request.speeds, strict=True)
        for cls, name in split[old]
    ]
    classes, relative = zip(*pairs, strict=True) if pairs else ((), ())
    return replace(request, classes=tuple(classes), speeds=tuple(relative))
