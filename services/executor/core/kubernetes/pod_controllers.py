"""Groups by the labels that controllers of other projects set on their pods.

JobSet (`jobset.sigs.k8s.io`, v1alpha2), with it Kubeflow Trainer, and the training operator of
Kubeflow (`training.kubeflow.org`: PyTorchJob and others) name their object on each pod. Neither
names the number of its pods there: that is the annotation of Berth, or the number of nodes that
their runtimes give torchrun.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Row = Mapping[str, Any]
JOBSET, JOBSET_JOB = "jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/job-global-index"
JOBSET_ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
"""A JobSet that is restarted makes all of its pods anew, with the next number."""
TRAINING_JOB = "training.kubeflow.org/job-name"
REPLICA_TYPE = "training.kubeflow.org/replica-type"
REPLICA_INDEX = "training.kubeflow.org/replica-index"
FIRST_TYPES = frozenset({"master", "chief", "launcher"})
"""Types whose replicas are before the others, in any case of letters."""
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
NODES = "PET_NNODES"
"""Variable of torchrun for the number of its nodes; a range, of an elastic job, is no number."""
NUMBER = re.compile("[1-9][0-9]{0,3}")
INDEX = re.compile("[0-9]{1,6}")


class ControllerGroup(NamedTuple):
    """The object of a controller that a pod belongs to."""

    group: str
    """Its kind, a slash, and its name: no label of a user has a slash."""
    place: tuple[int, int]
    """Of the pod among those of the object."""


def group_of(labels: Row) -> ControllerGroup | None:
    """Return the object of a controller that a pod belongs to; None if no label names one."""
    if name := str(labels.get(JOBSET, "")):
        attempt = number_of(labels, JOBSET_ATTEMPT)
        whole = f"{name}-{attempt}" if attempt else name
        job, pod = number_of(labels, JOBSET_JOB), number_of(labels, COMPLETION_INDEX)
        return ControllerGroup(f"jobset/{whole}", (job, pod))
    if name := str(labels.get(TRAINING_JOB, "")):
        is_later = str(labels.get(REPLICA_TYPE, "")).lower() not in FIRST_TYPES
        place = (int(is_later), number_of(labels, REPLICA_INDEX))
        return ControllerGroup(f"training/{name}", place)
    return None


def size_of(spec: Row) -> str:
    """Return the number of nodes that a container is given for torchrun, empty without one."""
    return next((text for text in _node_counts(spec) if NUMBER.fullmatch(text)), "")


def _node_counts(spec: Row) -> Iterator[str]:
    for container in spec.get("containers") or ():
        for variable in container.get("env") or ():
            if variable.get("name") == NODES:
                yield str(variable.get("value") or "")


def number_of(labels: Row, name: str) -> int:
    """Return the number that a label has, 0 without one."""
    number = INDEX.fullmatch(str(labels.get(name, "")))
    return int(number[0]) if number else 0
