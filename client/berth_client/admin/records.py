"""Submissions, the audit, inputs that were rejected, upgrades and requests of LLM endpoints."""

from __future__ import annotations

from collections.abc import Mapping

from berth_client import answers
from berth_client.calls import PAGE, Call, get, part

Receipt = Call[answers.CommandReceipt]
SUBMISSIONS = 200
"""Rows of a page of submissions."""


def submissions(
    tenant: str | None = None, pool: str | None = None, name: str = "", id_prefix: str = ""
) -> Call[answers.Page[answers.Submission]]:
    """Return the call for jobs and arrays, newest first; `name` is a prefix too."""
    filters = {"tenant": tenant, "pool": pool, "name": name, "id": id_prefix}
    return get("/v1/submissions", **filters, limit=SUBMISSIONS)


def audit(
    principal: str | None = None, action: str | None = None, outcome: str | None = None
) -> Call[answers.Page[answers.AuditEntry]]:
    return get("/v1/audit", principal=principal, action=action, outcome=outcome, limit=PAGE)


def dead_letters(settled: bool = False) -> Call[answers.Page[answers.DeadLetter]]:
    return get("/v1/dead", settled=settled, limit=PAGE)


def dead_letter(dead_id: str) -> Call[answers.DeadLetter]:
    return get(f"/v1/dead/{part(dead_id)}")


def retry_input(input_id: str) -> Receipt:
    """Have a quarantined input decided again."""
    return Call("POST", f"/v1/dead/{part(input_id)}/retry")


def skip_input(input_id: str, reason: str) -> Receipt:
    return Call("POST", f"/v1/dead/{part(input_id)}/skip", body={"reason": reason})


def finish_upgrade() -> Receipt:
    return Call("POST", "/v1/upgrade/finish")


def submit_llm_request(request: Mapping[str, object]) -> Receipt:
    return Call("POST", "/v1/llm/requests", body=request)


def llm_requests(
    endpoint: str | None = None, state: str | None = None, tenant: str | None = None
) -> Call[answers.Page[answers.LlmRequest]]:
    return get("/v1/llm/requests", endpoint=endpoint, state=state, tenant=tenant, limit=PAGE)


def llm_request(request_id: str, tenant: str | None = None) -> Call[answers.LlmRequest]:
    return get(f"/v1/llm/requests/{part(request_id)}", tenant=tenant)


def llm_rejections(since: int = 0) -> Call[answers.Page[answers.LlmRejections]]:
    return get("/v1/llm/rejections", since=since, limit=PAGE)


def llm_fairness(
    endpoint: str | None = None, since: int = 0
) -> Call[answers.Page[answers.FairnessGap]]:
    return get("/v1/llm/fairness", endpoint=endpoint, since=since, limit=PAGE)


def llm_limits() -> Call[answers.Page[answers.BudgetUse]]:
    return get("/v1/llm/limits")
