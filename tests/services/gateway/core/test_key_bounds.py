"""A key may be narrower than its tenant, and a job belongs to the user who sends it."""

from __future__ import annotations

from typing import Any

import pytest

from services.gateway.core.field_errors import InvalidBody
from services.gateway.core.key_bounds import NotPermitted, check_mails, check_owner, permitted
from services.gateway.core.submission import Sender, parse_submission
from shared.contracts.bounds import TenantBounds
from shared.contracts.job_commands import SubmitJob
from shared.contracts.job_spec import JobSpec
from shared.contracts.registry import Bearer

NARROW = Bearer(
    "k", "submitter", "acme", pools=("main",), highest_class="normal", max_job_gpus=2, user="ada"
)

ACME = Sender("acme", "main")


def submission(pool: str = "main", **spec: Any) -> SubmitJob:
    spec = {"name": "j", **spec}
    return SubmitJob(
        job_id="j", tenant="acme", pool=pool, idempotency_key="j", spec=JobSpec.model_validate(spec)
    )


@pytest.mark.parametrize(
    ("pool", "spec", "field"),
    [
        ("other", {}, "pool"),
        ("main", {"priority_class": "high"}, "priority_class"),
        ("main", {"gang": {"workers": 3}}, "gang.workers"),
        ("main", {"user": "eve"}, "user"),
        ("main", {"user": "unknown"}, "user"),
    ],
)
def test_what_a_key_does_not_permit_names_field_key_and_remedy(
    pool: str, spec: Any, field: str
) -> None:
    with pytest.raises(NotPermitted) as refused:
        permitted(submission(pool, **spec), NARROW, ACME)
    assert refused.value.error.field == field
    assert "key:k; an administrator" in str(refused.value)


def test_the_job_of_a_key_with_a_user_is_that_users() -> None:
    assert permitted(submission(), NARROW, ACME).spec.user == "ada"
    assert permitted(submission(user="ada"), NARROW, ACME).spec.user == "ada"


def test_a_key_with_a_user_changes_jobs_of_that_user_alone() -> None:
    check_owner(NARROW, "ada")
    with pytest.raises(NotPermitted, match="user = 'eve': must be 'ada', the user of key:k"):
        check_owner(NARROW, "eve")
    with pytest.raises(NotPermitted, match="must be 'carl', the user of oidc:carl"):
        check_owner(Bearer("carl", "submitter", "acme", expires_s=9e9), "eve")
    check_owner(NARROW._replace(user=None), "eve")
    check_owner(NARROW._replace(tenant=None, role="operator"), "eve")


def test_a_tenant_of_authenticated_users_has_no_other_users() -> None:
    shared_key = NARROW._replace(user=None)
    strict = Sender("acme", "main", TenantBounds(users="authenticated"))
    with pytest.raises(NotPermitted, match="user = 'eve': must be absent: key:k has no user"):
        permitted(submission(user="eve"), shared_key, strict)
    assert permitted(submission(), shared_key, strict).spec.user == "unknown"
    assert permitted(submission(), NARROW, strict).spec.user == "ada"
    operator = Bearer("op", "operator", None)
    assert permitted(submission(user="eve"), operator, strict).spec.user == "eve"
    assert permitted(submission(user="eve"), shared_key, ACME).spec.user == "eve", "another tenant"


def test_the_name_of_a_registered_user_is_that_of_its_keys_alone() -> None:
    sender, shared_key = Sender("acme", "main", users={"ada"}), NARROW._replace(user=None)
    with pytest.raises(NotPermitted, match="user = 'ada': must be absent: key:k has no user"):
        permitted(submission(user="ada"), shared_key, sender)
    assert permitted(submission(user="bob"), shared_key, sender).spec.user == "bob"
    assert permitted(submission(user="ada"), NARROW, sender).spec.user == "ada"
    operator = Bearer("op", "operator", None)
    assert permitted(submission(user="ada"), operator, sender).spec.user == "ada"


def test_the_subject_of_a_token_is_the_user_of_its_jobs() -> None:
    token = Bearer("carl", "submitter", "acme", expires_s=9e9)
    assert permitted(submission(), token, ACME).spec.user == "carl"
    with pytest.raises(NotPermitted, match="'carl'"):
        permitted(submission(user="eve"), token, ACME)
    other = permitted(submission(), token._replace(key_id="Carl X@example.test"), ACME).spec.user
    assert other.startswith("u-") and len(other) == 18


def test_a_key_without_a_user_names_it_as_before() -> None:
    shared = Bearer("k", "submitter", "acme")
    assert permitted(submission(user="eve"), shared, ACME) == submission(user="eve")
    assert permitted(submission("any", priority_class="system"), shared, ACME).pool == "any"


def test_no_body_says_that_its_sender_is_an_operator() -> None:
    for body in ({"name": "j", "by_operator": True}, {"spec": {"name": "j"}, "by_operator": True}):
        with pytest.raises(InvalidBody, match="by_operator"):
            parse_submission(body)


def test_mails_need_an_authenticated_user_with_an_address() -> None:
    job = submission(notify=("failed",))
    check_mails(submission(), None, ())
    check_mails(job, "ada", ("berth.mail.ada",))
    for user, addressed, rule in (
        (None, ("berth.mail.ada",), "authenticated user"),
        ("eve", ("berth.mail.ada",), "eve has no address"),
    ):
        with pytest.raises(NotPermitted, match=rule):
            check_mails(job, user, addressed)
