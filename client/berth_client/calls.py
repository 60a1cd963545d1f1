"""Requests of the API as values: both clients send the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote
from uuid import uuid4

from berth_client import answers

T = TypeVar("T")
Json = dict[str, Any]
Query = Mapping[str, object | None]
PAGE = 1000


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request whose answer is a `T`; one that is `repeatable` has the same effect twice."""

    method: str
    path: str
    query: Query = field(default_factory=dict)
    body: Mapping[str, object] | bytes | None = None
    repeatable: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters that are given, as they are in the address."""
        return {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in self.query.items()
            if value not in (None, "")
        }


def part(name: str) -> str:
    """Quote one segment of a path."""
    return quote(name, safe="")


def get(path: str, **query: object | None) -> Call[Any]:
    return Call("GET", path, query, repeatable=True)


def submit(
    spec: Mapping[str, object],
    tenant: str | None,
    pool: str | None,
    array_size: int | None,
    idempotency_key: str | None,
) -> Call[answers.SubmissionReceipt]:
    """Return a submission; with its key, drawn here if none is given, it can be repeated."""
    named = {"tenant": tenant, "pool": pool, "array_size": array_size}
    body = {"spec": dict(spec), **{name: value for name, value in named.items() if value}}
    headers = {"Idempotency-Key": idempotency_key or str(uuid4())}
    return Call("POST", "/v1/jobs", body=body, repeatable=True, headers=headers)


def bundle(manifest: Mapping[str, object], tenant: str | None) -> Call[answers.BundleReceipt]:
    return Call("PUT", "/v1/bundles", {"tenant": tenant}, manifest, repeatable=True)


def bundle_part(name: str, body: bytes, tenant: str | None) -> Call[answers.BundlePartReceipt]:
    path = f"/v1/bundles/parts/{part(name)}"
    return Call("PUT", path, {"tenant": tenant}, body, repeatable=True)


def retry(job_id: str, idempotency_key: str | None) -> Call[answers.SubmissionReceipt]:
    path, headers = f"/v1/jobs/{part(job_id)}/retry", {}
    headers["Idempotency-Key"] = idempotency_key or str(uuid4())
    return Call("POST", path, body={}, repeatable=True, headers=headers)


def cancel(job_id: str, reason: str, pool: str | None) -> Call[answers.CommandReceipt]:
    body = {"reason": reason, **({"pool": pool} if pool else {})}
    return Call("POST", f"/v1/jobs/{part(job_id)}/cancel", body=body, repeatable=True)


def change_node(node_id: str, change: str, reason: str) -> Call[answers.CommandReceipt]:
    """Return the command `cordon`, `uncordon` or `drain`, each of which sets a state."""
    path = f"/v1/nodes/{part(node_id)}/{change}"
    return Call("POST", path, body={"reason": reason}, repeatable=True)


def job(job_id: str) -> Call[answers.JobDetail]:
    return get(f"/v1/jobs/{part(job_id)}")


def why(job_id: str) -> Call[answers.Why]:
    return get(f"/v1/jobs/{part(job_id)}/why")


def timeline(job_id: str) -> Call[answers.JobHistory]:
    return get(f"/v1/jobs/{part(job_id)}/timeline")


def trace(job_id: str) -> Call[answers.JobTrace]:
    return get(f"/v1/jobs/{part(job_id)}/trace")


def logs(
    job_id: str, tail: int, rank: int | None, attempt: int | None, from_line: int | None
) -> Call[answers.JobLogs]:
    path = f"/v1/jobs/{part(job_id)}/logs"
    return get(path, tail=tail, rank=rank, attempt=attempt, from_line=from_line)


def tenant(name: str) -> Call[answers.TenantDetail]:
    return get(f"/v1/tenants/{part(name)}")


def whoami() -> Call[answers.WhoAmI]:
    return get("/v1/whoami")


def command(command_id: str) -> Call[answers.CommandAnswer]:
    return get(f"/v1/commands/{part(command_id)}")


def following(call: Call[Any], page: Mapping[str, Any]) -> Call[Any] | None:
    """Return the call for the page after this one; None if it was the last."""
    after = page.get("next")
    query = {**call.query, "after": after}
    return Call("GET", call.path, query, repeatable=True) if after else None


def jobs(
    tenant: str | None, phase: str | None, name: str | None, pool: str | None, array: str | None
) -> Call[answers.Page[answers.Job]]:
    filters = {"tenant": tenant, "phase": phase, "name": name, "pool": pool, "array": array}
    return get("/v1/jobs", **filters, limit=PAGE)
