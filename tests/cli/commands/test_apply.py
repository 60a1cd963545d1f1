"""`berth apply`: what differs is sent and nothing else, over a real socket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from shared.contracts.endpoints import EndpointConfigured, Upstream
from shared.contracts.pools import PoolConfigured
from tests.cli.settings_api import VERSION
from tests.serving import Quiet, serving

CONDITION, ABSENT = {"if_version": VERSION}, {"if_version": "absent"}
POOL = PoolConfigured(pool="gpu", partition=1, backends=("agent",), rank_ms=200)
ENDPOINT = EndpointConfigured(
    endpoint="meta/L", partition=2, upstreams=(Upstream(name="a", url="http://e:1"),)
)
TENANT = {
    "tenant": "ada",
    "active": True,
    "default_pool": "gpu",
    "weight": 1.0,
    "llm_weight": 1.0,
    "bounds": {"max_open_jobs": 5},
    "version": VERSION,
}
QUOTA = {
    "tenant": "ada",
    "pool": "gpu",
    "guaranteed_gpus": 4.0,
    "borrow_gpus": 2.0,
    "version": VERSION,
}
USER = {
    "tenant": "ada",
    "user": "eve",
    "registered": True,
    "bounds": {"max_open_jobs": 5, "pools": ["gpu", "cpu"]},
    "version": VERSION,
}
KEY = {
    "key_id": "ci",
    "tenant": "ada",
    "role": "submitter",
    "models": [],
    "user": "robot",
    "pools": ["gpu"],
}
HOOK = {
    "name": "ci",
    "tenant": "ada",
    "url": "https://hooks.example.org/",
    "events": ["failed", "succeeded"],
    "pools": [],
    "delivered": 7,
}
PRESENT = """
kind: pool
name: gpu
settings: {backends: [agent], rank_ms: 200, learned: null}
---
kind: endpoint
name: meta/L
settings:
  upstreams: [{name: a, url: "http://e:1"}]
---
{kind: tenant, name: ada, settings: {default_pool: gpu, weight: 1, max_open_jobs: 5}}
---
{kind: quota, tenant: ada, pool: gpu, settings: {guaranteed_gpus: 4}}
---
{kind: user, name: eve, tenant: ada, settings: {max_open_jobs: 5, pools: [cpu, gpu]}}
---
{kind: key, name: ci, tenant: ada, settings: {role: submitter, user: robot, pools: [gpu]}}
---
kind: webhook
name: ci
tenant: ada
settings: {url: "https://hooks.example.org/", events: [succeeded, failed], pools: null}
"""


class Gateway(Quiet):
    """Has one object of each kind, and notes what it is sent."""

    sent: ClassVar[list[tuple[str, str, dict[str, Any]]]] = []

    def do_GET(self) -> None:
        rows: dict[str, Any] = {
            "/v1/pools": [{"pool": "gpu", "settings": dump(POOL), "version": VERSION}],
            "/v1/endpoints": [
                {"endpoint": "meta/L", "settings": dump(ENDPOINT), "version": VERSION}
            ],
            "/v1/tenants/ada/keys": [KEY],
            "/v1/users": [USER, {**USER, "user": "robot", "registered": False}],
            "/v1/secrets": [{"name": "hf", "tenant": "ada"}],
            "/v1/webhooks": [HOOK],
        }
        path, query = urlsplit(self.path)[2:4]
        if query not in ("", "tenant=ada"):
            self.answer(422, b'{"reason": "invalid"}')
        elif path in rows:
            self.answer(200, json.dumps({"items": rows[path]}).encode())
        elif path == "/v1/tenants/ada":
            self.answer(200, json.dumps({**TENANT, "quota": [QUOTA]}).encode())
        elif path.startswith("/v1/commands/"):
            self.answer(200, b'{"accepted": true}')
        else:
            self.answer(404, b'{"reason": "not_found"}')

    def note(self) -> None:
        self.sent.append((self.command, unquote(self.path), json.loads(self.received())))
        receipt: dict[str, Any] = {"command_id": "c", "key": "shown.once"}
        if self.path.startswith("/v1/webhooks"):
            is_given = "secret" in self.sent[-1][2]
            receipt = {"command_id": "c", "secret": None if is_given else "whsec_new"}
        self.answer(202, json.dumps(receipt).encode())

    def do_DELETE(self) -> None:
        self.sent.append(("DELETE", unquote(self.path), {}))
        self.answer(202, b'{"command_id": "c"}')

    do_POST = do_PATCH = do_PUT = note


def dump(settings: PoolConfigured | EndpointConfigured) -> dict[str, Any]:
    return settings.model_dump(mode="json")


@pytest.fixture(autouse=True)
def gateway(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr(Gateway, "sent", [])
    # Without a stack of its own no topics are made.
    monkeypatch.chdir(tmp_path)
    with serving(Gateway) as url:
        monkeypatch.setenv("BERTH_URL", url)
        yield


def apply(text: str, *flags: str) -> Result:
    return CliRunner().invoke(app, ["apply", "-f", "-", *flags], input=text)


def test_what_is_as_declared_is_not_sent() -> None:
    ran = apply(PRESENT)
    assert (ran.exit_code, Gateway.sent) == (0, []), ran.output
    assert ran.stdout.splitlines() == [
        "pool gpu: unchanged",
        "tenant ada: unchanged",
        "quota gpu of ada: unchanged",
        "user eve of ada: unchanged",
        "key ci of ada: unchanged",
        "webhook ci of ada: unchanged",
        "endpoint meta/L: unchanged",
    ]


CHANGED = """
{kind: endpoint, name: meta/L, settings: {drained: true, discipline: berth}}
---
{kind: pool, name: gpu, settings: {backends: [agent], rank_ms: null, stop_after_s: keep}}
---
{kind: quota, tenant: ada, pool: gpu, settings: {guaranteed_gpus: 4, borrow_gpus: null}}
---
{kind: tenant, name: ada, settings: {weight: 3}}
---
{kind: user, name: robot, tenant: ada, settings: {max_job_gpus: 2}}
---
{kind: user, name: eve, tenant: ada, settings: {max_open_jobs: null}}
---
kind: webhook
name: ci
tenant: ada
settings: {url: "https://b.example.org/", events: [failed, succeeded]}
"""


def test_a_change_sends_what_differs_on_the_version_that_was_read() -> None:
    ran = apply(CHANGED)
    assert ran.exit_code == 0, ran.exception
    default = PoolConfigured.model_fields["rank_ms"].default
    settings = {"rank_ms": default, "stop_after_s": "keep"}
    assert Gateway.sent == [
        ("PATCH", "/v1/pools/gpu", {**settings, "if_version": VERSION}),
        ("PATCH", "/v1/tenants/ada", {"weight": 3.0, "if_version": VERSION}),
        ("PATCH", "/v1/tenants/ada/quota", {"borrow_gpus": None, "pool": "gpu", **CONDITION}),
        ("POST", "/v1/users?tenant=ada", {"user": "robot", "max_job_gpus": 2.0}),
        ("PATCH", "/v1/users/eve?tenant=ada", {"max_open_jobs": 10**9, **CONDITION}),
        ("PATCH", "/v1/webhooks/ci?tenant=ada", {"url": "https://b.example.org/"}),
        ("PATCH", "/v1/endpoints/meta/L", {"drained": True, "if_version": VERSION}),
    ]
    assert f"  rank_ms: 200 -> {default}" in ran.stdout.splitlines()
    assert "pool gpu: changed" in ran.stdout


NEW = """
{kind: key, name: new, tenant: bob}
---
{kind: quota, tenant: bob, pool: cpu, settings: {guaranteed_gpus: 1}}
---
{kind: tenant, name: bob, settings: {default_pool: cpu}}
---
{kind: pool, name: cpu, settings: {rank_ms: 5}}
"""


def test_new_objects_are_made_pools_first_and_a_key_is_shown_once() -> None:
    ran = apply(NEW)
    assert ran.exit_code == 0, ran.exception
    assert Gateway.sent == [
        ("POST", "/v1/pools", {"pool": "cpu", "rank_ms": 5, "if_version": "absent"}),
        ("POST", "/v1/tenants", {"tenant": "bob", "default_pool": "cpu", **ABSENT}),
        ("PATCH", "/v1/tenants/bob/quota", {"guaranteed_gpus": 1.0, "pool": "cpu", **ABSENT}),
        ("POST", "/v1/tenants/bob/keys", {"key_id": "new"}),
    ]
    assert ran.stdout.count("shown once: shown.once") == 1


def test_a_dry_run_sends_nothing_and_its_exit_code_says_whether_something_differs() -> None:
    ran = apply(CHANGED, "--dry-run", "--json")
    assert (ran.exit_code, Gateway.sent) == (1, [])
    [pool, *_] = json.loads(ran.stdout)["changes"]
    assert pool["settings"]["stop_after_s"] == {"before": 600.0, "after": "keep"}
    assert apply(PRESENT, "--dry-run").exit_code == 0


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("{kind: pol, name: gpu}", "document 1 (pol gpu): kind: 'pol'; one of pool, tenant, "),
        ("{kind: pool, nam: gpu}", "document 1 (pool): nam: unknown field; name is allowed, and "),
        ("{kind: pool}", "document 1 (pool): name: None; a name is allowed"),
        ("{kind: pool, name: a, settings: {rank_mss: 1}}", "rank_mss: unknown field; rank_ms"),
        ("{kind: pool, name: a, settings: {rank_ms: -1}}", "rank_ms: -1; greater than or equal"),
        ("{kind: pool, name: a, settings: {pool: b}}", "pool: unknown field"),
        ("{kind: pool, name: a}\n---\n{kind: pool, name: a}", "document 2: pool a: declared twice"),
        (
            "{kind: endpoint, name: a, settings: {upstreams: [{name: a, url: 'http://e', ky: b}]}}",
            "upstreams.0.ky: unknown field",
        ),
        (
            "{kind: key, name: a, tenant: b, settings: {secret: x}}",
            "secret: unknown field; one of r",
        ),
        ("{kind: key, name: ci, tenant: ada, settings: {role: viewer}}", "a key does not change"),
        ("{kind: tenant, name: new}", "tenant new: default_pool: missing"),
        (
            "{kind: user, name: eve, tenant: ada, settings: {max_jobs: 1}}",
            "max_jobs: unknown field; max_job_gpus or max_open_jobs is allowed",
        ),
        ("# nothing", "no document"),
        ("{kind: pool, name: a, state: gone}", "state: 'gone'; one of absent, present is allowed"),
        (
            "{kind: quota, tenant: a, pool: b, state: absent}",
            "a quota cannot be deleted; set its bounds to 0",
        ),
        (
            "{kind: pool, name: a, state: absent, settings: {rank_ms: 1}}",
            "settings: rank_ms: must be empty with state: absent",
        ),
        (
            "{kind: secret, name: a, tenant: ada, settings: {file: none}}",
            "file: 'none': no file below ",
        ),
        (
            "{kind: secret, name: a, tenant: ada, settings: {file: /etc/passwd}}",
            "file: '/etc/passwd': not below ",
        ),
        (
            "{kind: secret, name: a, tenant: ada, settings: {file: ../x}}",
            "--secrets DIR allows another folder",
        ),
        ("{kind: secret, name: a, tenant: ada, settings: {file: 1}}", "file: 1; a file that"),
        ("{kind: secret, name: a, tenant: ada, settings: {value: x}}", "value: unknown field"),
        ("{kind: webhook, name: a, settings: {}}", "tenant: None; a name is allowed"),
        ("{kind: webhook, name: a, tenant: ada}", "url: missing; a value is required"),
        (
            "{kind: webhook, name: a, tenant: ada, settings: {url: 'ftp://a', events: [failed]}}",
            "url: 'ftp://a'; a string that matches",
        ),
        (
            "{kind: webhook, name: a, tenant: ada, settings: {url: 'https://a', events: [done]}}",
            "events: 'done'; 'started', 'succeeded', 'failed', ",
        ),
        (
            "{kind: webhook, name: a, tenant: ada, settings: {secret: x}}",
            "secret: unknown field; one of events, pools, url, secret_file",
        ),
        (
            "{kind: webhook, name: a, tenant: ada, settings: {secret_file: ../x}}",
            "secret_file: '../x': not below ",
        ),
    ],
)
def test_a_wrong_document_is_named_with_field_and_rule_and_nothing_is_sent(
    text: str, rule: str
) -> None:
    ran = apply(text)
    assert ran.exit_code and rule in str(ran.exception), ran.exception
    assert Gateway.sent == []


GONE = """
{kind: pool, name: gpu, state: absent}
---
{kind: tenant, name: ada, state: absent}
---
{kind: key, name: ci, tenant: ada, state: absent}
---
{kind: key, name: other, tenant: ada, state: absent}
---
{kind: user, name: eve, tenant: ada, state: absent}
---
{kind: secret, name: hf, tenant: ada, state: absent}
---
{kind: webhook, name: ci, tenant: ada, state: absent}
---
{kind: endpoint, name: meta/L, state: absent}
"""


def test_what_is_declared_absent_is_deleted_before_what_it_names() -> None:
    plan = apply(GONE, "--dry-run")
    assert (plan.exit_code, Gateway.sent) == (1, [])
    assert plan.stdout.splitlines() == [
        "endpoint meta/L: delete",
        "webhook ci of ada: delete",
        "secret hf of ada: delete",
        "key ci of ada: delete",
        "key other of ada: unchanged",
        "user eve of ada: delete",
        "tenant ada: delete",
        "pool gpu: delete",
    ]
    ran = apply(GONE)
    assert ran.exit_code == 0, ran.exception
    assert [path for _, path, _ in Gateway.sent] == [
        "/v1/endpoints/meta/L",
        "/v1/webhooks/ci?tenant=ada",
        "/v1/secrets/hf?tenant=ada",
        "/v1/keys/ci",
        "/v1/users/eve?tenant=ada",
        "/v1/tenants/ada",
        "/v1/pools/gpu",
    ]
    assert "pool gpu: deleted" in ran.stdout


def test_a_new_secret_has_the_value_of_its_file_and_one_that_exists_is_left(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    declared = "{{kind: secret, name: {}, tenant: ada, settings: {{file: token}}}}"
    ran = apply(declared.format("hf") + "\n---\n" + declared.format("new"))
    assert ran.exit_code == 0, ran.exception
    assert Gateway.sent == [("PUT", "/v1/secrets/new?tenant=ada", {"value": "s3cret"})]
    assert "s3cret" not in ran.output
    assert "secret hf of ada: present, value not compared" in ran.stdout
    assert apply(declared.format("hf"), "--replace-secrets").exit_code == 0
    assert Gateway.sent[1:] == [("PUT", "/v1/secrets/hf?tenant=ada", {"value": "s3cret"})]


NEW_HOOK = """
kind: webhook
name: {}
tenant: ada
settings: {{url: "https://hooks.example.org/", events: [failed, succeeded]{}}}
"""


def test_a_new_webhook_shows_its_secret_once_or_has_that_of_a_file(tmp_path: Path) -> None:
    plan = apply(NEW_HOOK.format("a", ", pools: [gpu]"), "--dry-run")
    assert (plan.exit_code, Gateway.sent) == (1, [])
    assert plan.stdout.splitlines() == [
        "webhook a of ada: create",
        "  events: failed, succeeded",
        "  pools: gpu",
        "  url: https://hooks.example.org/",
    ]
    ran = apply(NEW_HOOK.format("a", ", pools: [gpu]"))
    body = {"name": "a", "url": HOOK["url"], "events": HOOK["events"]}
    assert Gateway.sent == [("POST", "/v1/webhooks?tenant=ada", {**body, "pools": ["gpu"]})]
    assert ran.stdout.count("shown once: whsec_new") == 1
    (tmp_path / "signing").write_text("whsec_mine\n")
    ran = apply(NEW_HOOK.format("a", ", secret_file: signing"))
    assert Gateway.sent[1:] == [
        ("POST", "/v1/webhooks?tenant=ada", {**body, "secret": "whsec_mine"})
    ]
    assert "webhook a of ada: created" in ran.stdout and "whsec" not in ran.output


def test_the_secret_of_a_webhook_that_exists_stays(tmp_path: Path) -> None:
    (tmp_path / "signing").write_text("whsec_mine")
    ran = apply(NEW_HOOK.format("ci", ", secret_file: signing"), "--replace-secrets")
    assert (ran.exit_code, Gateway.sent) == (0, []), ran.exception
    assert ran.stdout == "webhook ci of ada: unchanged, signing secret not compared\n"


def test_a_tenant_that_the_file_makes_has_no_secrets_and_webhooks_yet(tmp_path: Path) -> None:
    """The lists of an unknown tenant are refused by the gateway."""
    (tmp_path / "token").write_text("x")
    tenant = "{kind: tenant, name: bob, settings: {default_pool: gpu}}"
    secret = "{kind: secret, name: hf, tenant: bob, settings: {file: token}}"
    hook = NEW_HOOK.format("ci", "").replace("ada", "bob")
    ran = apply("\n---\n".join((hook, secret, tenant)))
    assert ran.exit_code == 0, ran.exception
    assert [path for _, path, _ in Gateway.sent] == [
        "/v1/tenants",
        "/v1/secrets/hf?tenant=bob",
        "/v1/webhooks?tenant=bob",
    ]


def test_files_of_secrets_are_those_below_the_folder_of_the_documents_or_another_that_is_named(
    tmp_path: Path,
) -> None:
    documents, other = tmp_path / "documents", tmp_path / "other"
    for folder in (documents, other):
        folder.mkdir()
        (folder / "token").write_text(folder.name)
    (documents / "link").symlink_to(other / "token")
    file = documents / "berth.yaml"
    for name, sent in (("token", "documents"), ("link", ""), (str(other / "token"), "")):
        file.write_text(f"{{kind: secret, name: a, tenant: ada, settings: {{file: {name}}}}}")
        ran = CliRunner().invoke(app, ["apply", "-f", str(file)])
        assert [body["value"] for _, _, body in Gateway.sent] == [sent] * bool(sent)
        assert bool(ran.exit_code) != bool(sent), ran.output
        Gateway.sent.clear()
        ran = CliRunner().invoke(app, ["apply", "-f", str(file), "--secrets", str(other)])
        assert bool(ran.exit_code) == (name == "link")
        Gateway.sent.clear()
