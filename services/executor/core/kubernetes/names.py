"""Names, labels and annotations by which objects of Berth are known in Kubernetes."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

IDENTITY = "berth/identity"
"""Annotation with the text of an `Identity`."""
RANK = "berth/rank"
GANG = "berth/gang"
JOB = "berth/job"
"""Label, whose value takes not every id, and annotation with the whole id."""
TENANT = "berth/tenant"
ENDED = "berth/ended"
"""Annotation of a pod that Berth deletes: one that is deleted without it was deleted by others."""
NAMESPACE, WORLD_SIZE = "berth/namespace", "berth/world-size"
"""Annotations of a record: where the pods of the gang are, and how many."""
UIDS = "berth/uids"
"""Annotation of a record whose gang is started: the uids of its pods by rank, with commas."""
BOUND_TO = "berth/nodes"
"""Annotation of a record whose gang is started: the nodes that its pods are bound to, by rank."""
PODS = "berth/pods"
"""Annotation of a record: the names of the pods by rank, where its tenant created them."""
MANAGED_BY = "app.kubernetes.io/managed-by"
BERTH = "berth"
FINALIZER = "berth/reported"
"""Keeps a pod, with its exit code, until its end is released in the ledger."""
GPU = "nvidia.com/gpu"
WORKER = "worker"
"""Name of the container of a worker."""
LABEL_PATTERN = "[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
NAMESPACE_PATTERN = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"


@lru_cache(16_384)
def gang_name(identity: str) -> str:
    """Return the name of a gang in Kubernetes: an identity has characters that names may not."""
    return f"berth-{hashlib.sha256(identity.encode()).hexdigest()[:20]}"


def label_value(text: str) -> str:
    """Return the value of a label for a text: itself, or its beginning and its digest."""
    if re.fullmatch(LABEL_PATTERN, text):
        return text
    begin = re.sub(r"[^A-Za-z0-9._-]", "_", text[:40]).lstrip("._-")
    return f"{begin}-{hashlib.sha256(text.encode()).hexdigest()[:20]}".lstrip("-")


def pod_name(gang: str, rank: int) -> str:
    return f"{gang}-{rank}"


def is_namespace(name: str) -> bool:
    return re.fullmatch(NAMESPACE_PATTERN, name) is not None
