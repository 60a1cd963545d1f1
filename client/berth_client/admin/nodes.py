"""Nodes, their identities, faults and drills."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from berth_client import answers
from berth_client.calls import PAGE, Call, get, part

Receipt = Call[answers.CommandReceipt]


def node(node_id: str) -> Call[answers.Node]:
    return get(f"/v1/nodes/{part(node_id)}")


def forget(node_id: str) -> Receipt:
    """Remove a revoked node that is gone for good."""
    return Call("DELETE", f"/v1/nodes/{part(node_id)}")


def declare_lost(node_id: str, powered_off: bool = False, reason: str = "") -> Receipt:
    """Give a node up: its jobs stop. One that is off releases its GPUs at once."""
    body = {"powered_off": powered_off, "reason": reason}
    return Call("POST", f"/v1/nodes/{part(node_id)}/lost", body=body)


def enrolments(pool: str | None = None) -> Call[answers.Page[answers.EnrolledNode]]:
    return get("/v1/enrolments", pool=pool, limit=PAGE)


def enrolment(node_id: str) -> Call[answers.EnrolledNode]:
    return get(f"/v1/enrolments/{part(node_id)}")


def approve(node_id: str) -> Receipt:
    return Call("POST", f"/v1/nodes/{part(node_id)}/approve")


def revoke(node_id: str, reason: str = "") -> Receipt:
    """Take the identity of a node away."""
    return Call("POST", f"/v1/nodes/{part(node_id)}/revoke", body={"reason": reason})


def tokens(ended: bool = False) -> Call[answers.Page[answers.NodeToken]]:
    return get("/v1/nodes/tokens", ended=ended, limit=PAGE)


def create_token(settings: Mapping[str, object]) -> Call[answers.NodeTokenReceipt]:
    """Create a join token; the receipt shows it once."""
    return Call("POST", "/v1/nodes/tokens", body=settings)


def revoke_token(token_id: str) -> Receipt:
    return Call("DELETE", f"/v1/nodes/tokens/{part(token_id)}")


def allocations(
    pool: str | None = None, job: str | None = None, released: bool = False
) -> Call[answers.Page[answers.Allocation]]:
    return get("/v1/allocations", pool=pool, job=job, released=released, limit=PAGE)


def faults(
    pool: str | None = None, node: str | None = None, state: str | None = None
) -> Call[answers.Page[answers.Fault]]:
    return get("/v1/faults", pool=pool, node=node, state=state, limit=PAGE)


def mitigations(pool: str | None = None) -> Call[answers.Page[answers.Mitigation]]:
    return get("/v1/faults/summary", pool=pool)


def dismiss_fault(fault_id: str, reason: str = "") -> Receipt:
    return _fault(f"{part(fault_id)}/dismiss", reason)


def report_false_alarm(fault_id: str, reason: str = "") -> Receipt:
    return _fault(f"{part(fault_id)}/false-alarm", reason)


def approve_plan(plan_id: str, reason: str = "") -> Receipt:
    return _fault(f"plans/{part(plan_id)}/approve", reason)


def inject(node_id: str, injection: Mapping[str, object]) -> Receipt:
    """Inject a fault for a drill, where the pool permits it."""
    return Call("POST", f"/v1/nodes/{part(node_id)}/inject", body=injection)


def end_injection(node_id: str, reason: str = "") -> Receipt:
    return Call("POST", f"/v1/nodes/{part(node_id)}/end-injection", body={"reason": reason})


def _fault(path: str, reason: str) -> Call[Any]:
    return Call("POST", f"/v1/faults/{path}", body={"reason": reason})
