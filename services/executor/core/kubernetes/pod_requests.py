"""Pods that users create with `schedulerName: berth`: their requests.

Whoever may create pods may write any value here, so none may break the list of all pods.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from services.executor.core.kubernetes.names import BERTH
from shared.contracts.job_spec import MOST_PODS, PRIORITY_CLASSES

Row = Mapping[str, Any]
GROUP = "berth/group"
"""Label of the pods of one gang."""
GROUP_SIZE = "berth/group-size"
"""Annotation with the number of pods of a gang; without it each pod is a gang of its own."""
POOL = "berth/pool"
"""Label with the pool; without it the default pool of the tenant."""
PRIORITY_CLASS = "berth/priority-class"
"""Annotation with the priority class of the job."""
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
SCHEDULED = "PodScheduled"
NUMBER = re.compile("[1-9][0-9]{0,3}")
DEFAULT_GRACE_S = 30.0
LABEL_OF_INDEX = re.compile("[0-9]{1,6}")


@dataclass(frozen=True, slots=True)
class PodRequest:
    """The request of a pod to Berth as its scheduler."""

    group: str
    """Empty: it is a gang of its own."""
    size: int
    pool: str
    index: int
    """Completion index of an indexed Job, which is the rank; 0 without one."""
    grace_s: float
    deadline_s: float | None
    priority_class: str
    is_gated: bool
    """Its scheduling gates are not lifted yet."""
    fault: str
    """Why Berth cannot place it; empty if it can."""
    message: str
    """Message of its condition PodScheduled."""


def request_of(row: Row) -> PodRequest | None:
    """Return the request of a pod of the API; None where another scheduler places it."""
    metadata, spec = row["metadata"], row.get("spec") or {}
    if spec.get("schedulerName") != BERTH:
        return None
    labels: Row = metadata.get("labels") or {}
    annotations: Row = metadata.get("annotations") or {}
    size = NUMBER.fullmatch(str(annotations.get(GROUP_SIZE, "1")))
    index = LABEL_OF_INDEX.fullmatch(str(labels.get(COMPLETION_INDEX, "")))
    conditions = (row.get("status") or {}).get("conditions") or ()
    messages = (c.get("message") for c in conditions if c.get("type") == SCHEDULED)
    grace_s, deadline_s = (
        spec.get("terminationGracePeriodSeconds"),
        spec.get("activeDeadlineSeconds"),
    )
    return PodRequest(
        group=str(labels.get(GROUP, "")) if size and size[0] != "1" else "",
        size=int(size[0]) if size else 1,
        pool=str(labels.get(POOL, "")),
        index=int(index[0]) if index else 0,
        grace_s=DEFAULT_GRACE_S if grace_s is None else float(grace_s),
        deadline_s=float(deadline_s) if deadline_s else None,
        priority_class=str(annotations.get(PRIORITY_CLASS, "")),
        is_gated=bool(spec.get("schedulingGates")),
        fault=next(_faults(spec, labels, annotations), ""),
        message=str(next(messages, None) or ""),
    )


def _faults(spec: Row, labels: Row, annotations: Row) -> Iterator[str]:
    """Yield what Berth cannot keep of a pod: it knows the nodes of a pool, and not their labels."""
    size, class_ = annotations.get(GROUP_SIZE), annotations.get(PRIORITY_CLASS)
    is_number = size is None or NUMBER.fullmatch(str(size))
    if not is_number or int(size or 1) > MOST_PODS:
        yield f"{GROUP_SIZE}: {str(size)[:40]!r}: must be a number from 1 to {MOST_PODS}"
    elif size not in (None, "1") and not labels.get(GROUP):
        yield f"{GROUP}: this label is needed with {GROUP_SIZE}"
    if class_ is not None and class_ not in PRIORITY_CLASSES:
        known = ", ".join(PRIORITY_CLASSES)
        yield f"{PRIORITY_CLASS}: {str(class_)[:40]!r}: must be one of {known}"
    if spec.get("nodeSelector"):
        yield "nodeSelector: must be absent; the label berth/pool chooses the nodes"
    affinity: Row = spec.get("affinity") or {}
    for kind, rules in affinity.items():
        if (rules or {}).get("requiredDuringSchedulingIgnoredDuringExecution"):
            yield f"affinity.{kind}: must be absent, or preferred alone"
    spreads = spec.get("topologySpreadConstraints") or ()
    if any(spread.get("whenUnsatisfiable") == "DoNotSchedule" for spread in spreads):
        yield "topologySpreadConstraints: DoNotSchedule: must be ScheduleAnyway"
    if spec.get("resourceClaims"):
        yield "resourceClaims: must be absent; GPUs are those of a device plugin"
