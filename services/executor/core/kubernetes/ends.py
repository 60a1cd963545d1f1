"""Ends of pods: the exit code of the container, and why, as its kubelet noted it."""

from __future__ import annotations

from collections.abc import Mapping

from services.executor.core.engines.contract import RankEnd
from services.executor.core.kubernetes.pods import PodSeen, Termination
from shared.contracts.failures import Failure

NOT_STARTED = frozenset({"StartError", "ContainerCannotRun"})
MISSING = ("not found", "no such file")
SIGTERM_CODE, KILLED_CODE, MISSING_CODE = 143, 137, 127
BLAMED_LAST_MS = 999
"""The API has whole seconds: of two ends in one, that of a pod that was ended comes later."""
REFUSALS = ("UnexpectedAdmissionError", "OutOf", "Node", "Topology", "Unsupported")
"""Beginnings of the reasons of a kubelet that does not take a pod."""


def rank_ends(
    pods: Mapping[int, PodSeen], outputs: Mapping[str, tuple[str, ...]]
) -> dict[int, RankEnd]:
    """Return the ends of workers by rank; none of a pod that no kubelet ended."""
    ends = {}
    over = {rank: pod for rank, pod in pods.items() if pod.is_over and not pod.is_lost}
    first = min(over.values(), key=_ended_ms, default=None)
    for rank, pod in over.items():
        ends[rank] = _rank_end(pod, outputs.get(pod.uid, ()), is_first=pod is first)
    return ends


def _ended_ms(pod: PodSeen) -> int:
    ended_ms = pod.end.finished_ms if pod.end is not None else 0
    return ended_ms + (BLAMED_LAST_MS if pod.is_deleted else 0)


def _rank_end(pod: PodSeen, output: tuple[str, ...], *, is_first: bool) -> RankEnd:
    end = pod.end
    if end is None:
        reason = "engine_refused" if pod.reason.startswith(REFUSALS) else "step_lost"
        words = ": ".join(filter(None, (pod.reason, pod.message)))
        detail = f"Kubernetes: {words or 'it did not start'}"[:1024]
        if pod.is_marked:
            reason = detail = ""
        return RankEnd(KILLED_CODE, 0, _ended_ms(pod), reason, detail, output)
    code, reason, detail = _judge(pod, end, is_first=is_first)
    ran_ms = max(0, end.finished_ms - end.started_ms)
    return RankEnd(code, ran_ms, _ended_ms(pod), reason, detail[:1024], output)


def _judge(pod: PodSeen, end: Termination, *, is_first: bool) -> tuple[int, str, str]:
    """Return exit code, reason and detail of a container that ended."""
    if end.reason in NOT_STARTED:
        if any(words in end.message.lower() for words in MISSING):
            return MISSING_CODE, "command_missing", end.message
        return end.exit_code or 1, "start_failed", end.message
    if pod.reason == "DeadlineExceeded":
        return SIGTERM_CODE, "walltime", ""
    if end.reason == "OOMKilled":
        return end.exit_code, "out_of_memory", "the worker used more than its memory"
    if pod.reason:
        return end.exit_code, "step_lost", f"Kubernetes: {pod.reason}: {pod.message}"
    if end.exit_code and is_first and pod.is_deleted and not pod.is_marked:
        words = f"pod {pod.namespace}/{pod.name} was deleted in Kubernetes"
        return end.exit_code, "engine_cancelled", words
    return end.exit_code, "", ""


def forgotten_failure(owner: str) -> Failure:
    words = f"Kubernetes has no memory of the start of {owner}, as after a restore of etcd"
    return Failure(reason="step_lost", detail=words[:1024])


def lost_failure(owner: str) -> Failure:
    return Failure(reason="step_lost", detail=f"Kubernetes gave up a node of {owner}"[:1024])
