"""Pods that users create with `schedulerName: berth`: their requests.

Whoever may create pods may write any value here, so none may break the list of all pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from services.executor.core.kubernetes.names import BERTH
from services.executor.core.kubernetes.pod_controllers import (
    COMPLETION_INDEX,
    NUMBER,
    ControllerGroup,
    group_of,
    number_of,
    size_of,
)
from shared.contracts.job_spec import MOST_PODS, PRIORITY_CLASSES

Row = Mapping[str, Any]
GROUP = "berth/group"
"""Label of the pods of one gang; without it those of one object of a known controller are."""
GROUP_SIZE = "berth/group-size"
"""Annotation with the number of pods of a gang; without it each pod is a gang of its own, but for a
controller's that gives torchrun the number of nodes."""
POOL = "berth/pool"
"""Label with the pool; without it the default pool of the tenant."""
PRIORITY_CLASS = "berth/priority-class"
"""Annotation with the priority class of the job."""
SCHEDULED = "PodScheduled"
DEFAULT_GRACE_S = 30.0


@dataclass(frozen=True, slots=True)
class PodRequest:
    """The request of a pod to Berth as its scheduler."""

    group: str
    """Its name, after a slash if it has a kind; empty: it is a gang of its own."""
    size: int
    pool: str
    index: tuple[int, int]
    """Place among the pods of its group, first that of its part: with the completion index of an
    indexed Job, which is the rank; zeros without one."""
    grace_s: float
    deadline_s: float | None
    priority_class: str
    is_gated: bool
    """Its scheduling gates are not lifted yet."""
    fault: str
    """Why Berth cannot place it; empty if it can."""
    message: str
    """Message of its condition PodScheduled."""
    tolerations: tuple[Row, ...] = ()
    """As the API has them: a change replaces all."""


def request_of(row: Row) -> PodRequest | None:
    """Return the request of a pod of the API; None where another scheduler places it."""
    metadata, spec = row["metadata"], row.get("spec") or {}
    if spec.get("schedulerName") != BERTH:
        return None
    labels: Row = metadata.get("labels") or {}
    annotations: Row = metadata.get("annotations") or {}
    own, controllers = str(labels.get(GROUP, "")), group_of(labels)
    size_text = str(annotations.get(GROUP_SIZE, _default_size(own, controllers, spec)))
    size = NUMBER.fullmatch(size_text)
    by_controller = controllers.group if controllers else ""
    conditions = (row.get("status") or {}).get("conditions") or ()
    messages = (c.get("message") for c in conditions if c.get("type") == SCHEDULED)
    grace_s, deadline_s = (
        spec.get("terminationGracePeriodSeconds"),
        spec.get("activeDeadlineSeconds"),
    )
    return PodRequest(
        group=(own or by_controller) if size and size[0] != "1" else "",
        size=int(size[0]) if size else 1,
        pool=str(labels.get(POOL, "")),
        index=controllers.place if controllers else (0, number_of(labels, COMPLETION_INDEX)),
        grace_s=DEFAULT_GRACE_S if grace_s is None else float(grace_s),
        deadline_s=float(deadline_s) if deadline_s else None,
        priority_class=str(annotations.get(PRIORITY_CLASS, "")),
        is_gated=bool(spec.get("schedulingGates")),
        fault=next(_faults(spec, size_text, own or by_controller, annotations), ""),
        message=str(next(messages, None) or ""),
        tolerations=tuple(spec.get("tolerations") or ()),
    )


def _default_size(own: str, controllers: ControllerGroup | None, spec: Row) -> str:
    """Return the size of a group whose pods name none."""
    return size_of(spec) or "1" if controllers and not own else "1"


def _faults(spec: Row, size: str, group: str, annotations: Row) -> Iterator[str]:
    """Yield what Berth cannot keep of a pod: it knows the nodes of a pool, and not their labels."""
    class_ = annotations.get(PRIORITY_CLASS)
    if not NUMBER.fullmatch(size) or int(size) > MOST_PODS:
        yield f"{GROUP_SIZE}: {size[:40]!r}: must be a number from 1 to {MOST_PODS}"
    elif size != "1" and not group:
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
