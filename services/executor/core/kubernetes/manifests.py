"""The objects that Berth creates for a gang: a pod per worker, and the name of its first one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from services.executor.core.agents.state import AgentWorker
from services.executor.core.engines.environment import gang_variables, rank_variables
from services.executor.core.engines.gangs import EngineGang
from services.executor.core.engines.readiness import port_of
from services.executor.core.kubernetes.names import (
    BERTH,
    FINALIZER,
    GANG,
    GPU,
    IDENTITY,
    JOB,
    MANAGED_BY,
    RANK,
    TENANT,
    WORKER,
    gang_name,
    label_value,
    pod_name,
)
from services.executor.core.kubernetes.nodes import Toleration
from shared.contracts.agents import Launch

SHM = "shm"
LEAST_MEMORY_GIB = 1.0
"""Limit of a worker that names no memory: as much as one has that leaves it to the default."""
DISK = "ephemeral-storage"
GPU_VARIABLES = frozenset({"NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"})
"""Variables of a job that are left out: the device plugin sets them."""
STAYS: tuple[dict[str, str], ...] = (
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
)
"""A silent node keeps its pods: Berth decides what becomes of them, and when."""
Manifest = dict[str, Any]


class PodOptions(NamedTuple):
    """Settings of an operator for the pods of a pool."""

    image: str = ""
    """Image of jobs that name none."""
    network: str = "pod"
    """`host`: the network of the node."""
    priority_class: str = ""
    tolerations: tuple[Toleration, ...] = ()
    disk_gib: float = 0.0
    """Files that a worker may have on the disk of its node, with its output; 0: no limit."""


def needs_service(gang: EngineGang, options: PodOptions) -> bool:
    """Return whether workers find the first one by a name: pods get their addresses late."""
    return options.network != "host" and gang.launch.world_size > 1


def master_address(gang: EngineGang, namespace: str, options: PodOptions) -> str:
    """Return the address of the worker of rank 0."""
    if needs_service(gang, options):
        name = gang_name(gang.identity)
        return f"{pod_name(name, 0)}.{name}.{namespace}.svc"
    return gang.launch.master_addr if options.network == "host" else "127.0.0.1"


def service_manifest(gang: EngineGang, owner: Mapping[str, str]) -> Manifest:
    """Return a service without an address, by which pods of the gang have names."""
    name = gang_name(gang.identity)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "labels": {MANAGED_BY: BERTH, GANG: name},
            "ownerReferences": [dict(owner)],
        },
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {GANG: name}},
    }


def owner_reference(name: str, uid: str) -> dict[str, str]:
    """Return a reference to the pod of rank 0, which owns what else the gang has."""
    return {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}


def pod_manifest(
    gang: EngineGang,
    worker: AgentWorker,
    namespace: str,
    options: PodOptions,
    owner: Mapping[str, str] | None,
) -> Manifest:
    """Return the pod of a worker. It runs nowhere before it is bound to its node."""
    launch, name = worker.launch, gang_name(gang.identity)
    spec: Manifest = {
        "schedulerName": BERTH,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": grace_seconds(launch.grace_s),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "hostNetwork": options.network == "host",
        "tolerations": [*STAYS, *(toleration_manifest(one) for one in options.tolerations)],
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "volumes": [{"name": SHM, "emptyDir": {"medium": "Memory", "sizeLimit": _memory(launch)}}],
        "containers": [_container(gang, worker, namespace, options)],
    }
    if needs_service(gang, options):
        spec |= {"hostname": pod_name(name, launch.rank), "subdomain": name}
    if options.priority_class:
        spec["priorityClassName"] = options.priority_class
    if launch.walltime_s is not None:
        spec["activeDeadlineSeconds"] = max(1, math.ceil(launch.walltime_s))
    metadata: Manifest = {
        "name": pod_name(name, launch.rank),
        "labels": {
            MANAGED_BY: BERTH,
            GANG: name,
            JOB: label_value(launch.job_id),
            TENANT: launch.tenant,
        },
        "annotations": {IDENTITY: gang.identity, RANK: str(launch.rank), JOB: launch.job_id},
        "finalizers": [FINALIZER],
    }
    if owner is not None:
        metadata["ownerReferences"] = [dict(owner)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _container(
    gang: EngineGang, worker: AgentWorker, namespace: str, options: PodOptions
) -> Manifest:
    launch = worker.launch
    variables = gang_variables(launch, {}) | rank_variables(launch, worker.node_id)
    variables["MASTER_ADDR"] = master_address(gang, namespace, options)
    variables["MASTER_PORT"] = str(port_of(gang_name(gang.identity)))
    # The runtime of NVIDIA shows the GPUs that these name, also those of others.
    variables = {name: text for name, text in variables.items() if name not in GPU_VARIABLES}
    if not launch.gpus:
        variables["NVIDIA_VISIBLE_DEVICES"] = "void"
    container: Manifest = {
        "name": WORKER,
        "image": launch.image or options.image,
        "command": [literal(argument) for argument in launch.command],
        "env": [{"name": name, "value": literal(text)} for name, text in variables.items()],
        "resources": _resources(launch, options),
        "volumeMounts": [{"name": SHM, "mountPath": "/dev/shm"}],
        "securityContext": {"allowPrivilegeEscalation": False},
        "terminationMessagePolicy": "File",
    }
    if launch.workdir:
        container["workingDir"] = launch.workdir
    return container


def _resources(launch: Launch, options: PodOptions) -> Manifest:
    """Return requests, which are what Berth counts, and limits; without a request there is 0.

    What has a limit and no request would be requested up to its limit.
    """
    limits = {"memory": _memory(launch)}
    requests = {"memory": limits["memory"] if launch.mem_gib else "0"}
    if options.disk_gib:
        limits[DISK] = _mib(options.disk_gib)
        requests[DISK] = "0"
    if launch.cpus:
        requests["cpu"] = f"{math.ceil(launch.cpus * 1000)}m"
    if launch.gpus:
        limits[GPU] = str(len(launch.gpus))
    return {"requests": requests, "limits": limits}


def _memory(launch: Launch) -> str:
    return _mib(launch.mem_gib or LEAST_MEMORY_GIB)


def _mib(gib: float) -> str:
    return f"{math.ceil(gib * 1024)}Mi"


def literal(text: str) -> str:
    """Return a text that Kubernetes, which replaces `$(NAME)`, passes on as it is."""
    return text.replace("$", "$$")


def grace_seconds(grace_s: float) -> int:
    """Return a grace in whole seconds; 0 would remove the pod without its kubelet."""
    return max(1, math.ceil(grace_s))


def toleration_manifest(toleration: Toleration) -> dict[str, str]:
    written = {"key": toleration.key, "operator": "Equal" if toleration.value else "Exists"}
    if toleration.value:
        written["value"] = toleration.value
    if toleration.effect:
        written["effect"] = toleration.effect
    return written


def binding_manifest(name: str, uid: str, node: str) -> Manifest:
    """Return the binding of that pod, and of no later one of its name, to a node."""
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "uid": uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
