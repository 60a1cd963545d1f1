"""Words of the reasons for which a job waits, is stopped or is refused, with their numbers.

`berth why` shows them, and the pods of a job that its user created in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Mapping

Data = Mapping[str, object]

REASONS = {
    "quota": "the tenant's quota is used up",
    "spot_quota": "the spot quota is used up",
    "user_gpus": "its user's jobs have as many GPUs of the pool as they may at once",
    "array_limit": "as many jobs of its array are under way as may be at once",
    "dependency": "a dependency has not succeeded yet",
    "no_nodes": "the pool has no nodes yet, or they are still changing",
    "backoff": "backoff before the next attempt",
    "no_capacity": "too few GPUs are free",
    "no_node_fits": "no node has room for one of its workers",
    "behind_reservation": "GPUs are reserved for a job ahead of it",
    "behind_head": "the job at the head of the queue does not fit, and no job may pass it",
    "reserved_for_head": "it would delay the job at the head of the queue",
    "draining": "its nodes are being drained, or occupied by other work (`berth nodes`)",
    "disk_full": "its nodes take no new jobs until their disks have space again (`berth nodes`)",
    "infeasible": "no pool capacity could ever run it",
    "higher_class": "a job of a higher class needed the GPUs",
    "spot_reclaimed": "its spot GPUs were reclaimed",
    "outranked": "a job of a better rank needed the GPUs",
    "node_drained": "its node was drained",
    "node_lost": "its node was lost",
    "migrated": "it continues on GPUs reserved for it",
    "resized": "it continues with another number of workers",
    "drain": "its node is drained",
    "slow_node": "its node is slow",
    "defragment": "defragmentation for larger jobs",
    "balance": "load balancing",
    "scheduled": "the scheduler of the pool chose other nodes",
    "restart": "it restarts where it ran, as slow nodes had no room elsewhere",
    "grow": "it grows into idle GPUs",
    "shrink": "a waiting job can start on the released GPUs",
}

PROTECTION = ("protected_by", "protected_until", "deferred_stops")
RESERVATION = ("reserved_until", "outlasted_by", "not_reserved_before")
IN_WORDS = frozenset((*PROTECTION, *RESERVATION, "faster_at", "allotted_at", "chosen_nodes"))
"""Details of a hold that have a sentence of their own."""


def because(data: Data) -> str:
    """Return the reason in words, with its numbers; an unknown one is shown unchanged."""
    reason = str(data.get("reason") or "")
    text = REASONS.get(reason, reason.replace("_", " "))
    return "; ".join(part for part in (text, numbers_of(data)) if part) or "-"


def held_words(data: Data) -> str:
    """Return why a job waits, without the times and protections that have a sentence elsewhere."""
    return because(plain_hold(data))


def plain_hold(data: Data) -> Data:
    """Return a hold without the details of `IN_WORDS`."""
    detail = data.get("detail")
    if not isinstance(detail, dict):
        return data
    plain = {name: value for name, value in detail.items() if name not in IN_WORDS}
    return {**data, "detail": plain}


def numbers_of(data: Data) -> str:
    """Return the numbers of a hold or an end."""
    detail = data.get("detail")
    named = {"detail": detail} if isinstance(detail, str) and detail else {}
    numbers: dict[str, object] = dict(detail) if isinstance(detail, dict) else {**named}
    for name in ("short_gpus", "exit_code", "attempt", "lost_work_s"):
        if data.get(name) not in (None, "", 0, 0.0):
            numbers.setdefault(name, data[name])
    return ", ".join(
        f"{name.replace('_', ' ')} {value_text(value)}" for name, value in numbers.items()
    )


def value_text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
