"""Labels and variables of pods as controllers of other projects make them.

Written by hand after the constants of JobSet (v1alpha2) and of Kubeflow's training operator (v1).
"""

from __future__ import annotations

from typing import Any

INDEX = "batch.kubernetes.io/job-completion-index"


def jobset_labels(name: str, job: int, index: int, attempt: int = 0) -> dict[str, str]:
    """Return the labels of the pod of an index of a job of a JobSet."""
    return {
        "jobset.sigs.k8s.io/jobset-name": name,
        "jobset.sigs.k8s.io/replicatedjob-name": "workers",
        "jobset.sigs.k8s.io/replicatedjob-replicas": "2",
        "jobset.sigs.k8s.io/global-replicas": "2",
        "jobset.sigs.k8s.io/job-index": str(job),
        "jobset.sigs.k8s.io/job-global-index": str(job),
        "jobset.sigs.k8s.io/restart-attempt": str(attempt),
        "batch.kubernetes.io/job-name": f"{name}-workers-{job}",
        INDEX: str(index),
    }


def training_labels(name: str, kind: str, index: int) -> dict[str, str]:
    """Return the labels of a replica of a PyTorchJob; `kind` is `master` or `worker`."""
    return {
        "training.kubeflow.org/job-name": name,
        "training.kubeflow.org/operator-name": "pytorchjob-controller",
        "training.kubeflow.org/replica-type": kind,
        "training.kubeflow.org/replica-index": str(index),
    }


def torchrun(nodes: str) -> list[dict[str, Any]]:
    """Return the containers of a pod that is given this number of nodes for torchrun."""
    return [{"name": "main", "env": [{"name": "PET_NNODES", "value": nodes}]}]
