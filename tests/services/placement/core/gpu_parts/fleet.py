"""Small fleets and workers for tests of placement with parts of GPUs."""

from __future__ import annotations

from shared.contracts.gang_needs import GPU, NodeKind, Shape


def node(gpus: int, cpus: int = 64, gib: int = 512, gpu_type: str = "a") -> NodeKind:
    return NodeKind(gpu_type if gpus else "", gpus, cpus * 1000, gib * 1024, ())


def worker(gpus: float, cpus: float = 1, gib: int = 1, types: tuple[str, ...] = ()) -> Shape:
    milli = round(gpus * GPU)
    return Shape(
        gpus=milli // GPU if milli >= GPU else min(milli, 1),
        milli=milli if 0 < milli < GPU else GPU,
        cpu_milli=round(cpus * 1000),
        mem_mib=gib * 1024,
        types=types,
        selector=(),
        min_workers=1,
        max_workers=1,
    )
