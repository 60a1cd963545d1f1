"""Settings of services that an operator gives in the environment of `berth up`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

OIDC = frozenset(
    {
        "oidc_issuer",
        "oidc_audience",
        "oidc_keys",
        "oidc_ca",
        "oidc_leeway_s",
        "oidc_tenant",
        "oidc_role",
        "oidc_roles",
    }
)
SLURM = frozenset(
    {
        "slurm_pool",
        "slurm_folder",
        "slurm_partition",
        "slurm_commands",
        "slurm_user",
        "slurm_users",
        "slurm_account",
        "slurm_accounts",
        "slurm_qos",
        "slurm_hooks",
        "slurm_keep_d",
        "slurm_poll_s",
        "slurm_pending_s",
    }
)
KUBERNETES = frozenset(
    {
        "kubernetes_pool",
        "kubernetes_config",
        "kubernetes_namespace",
        "kubernetes_namespaces",
        "kubernetes_nodes",
        "kubernetes_image",
        "kubernetes_pods",
        "kubernetes_network",
        "kubernetes_priority_class",
        "kubernetes_tolerations",
        "kubernetes_disk_gib",
        "kubernetes_poll_s",
        "kubernetes_pending_s",
    }
)
RAY = frozenset(
    {
        "ray_pool",
        "ray_folder",
        "ray_address",
        "ray_token_file",
        "ray_stop_after_s",
        "ray_poll_s",
        "ray_pending_s",
    }
)
OF_ENGINES: Mapping[str, frozenset[str]] = {
    "executor-slurm": SLURM,
    "executor-kubernetes": KUBERNETES,
    "executor-ray": RAY,
}
"""Settings that make an executor one of an engine, by the name of the service."""
GIVEN: Mapping[str, frozenset[str]] = {
    "access": frozenset({"node_credential_days"}),
    "admission": frozenset(),
    "priority": frozenset({"models"}),
    "placement": frozenset(),
    "failslow": frozenset({"slowdown", "reports"}),
    "throttle": frozenset(
        {
            "upstream_keys",
            "upstream_ca",
            "tokenizers",
            "answers",
            "prompts_kept_h",
            "interaction_key",
            "open_requests",
            "tenant_open_requests",
            "open_body_mib",
            "tenant_open_body_mib",
        }
    )
    | OIDC,
    "executor": frozenset(
        {"agent_pools", "report_window_ms", "slow", "secrets", "secret_keys", "bundles"}
    )
    | SLURM
    | KUBERNETES
    | RAY,
    "publisher": frozenset({"max_records", "refresh_s", "archive_every_h"}),
    "projector": frozenset(
        {"gather_ms", "batch_records", "job_history_d", "records_d", "job_logs"}
    ),
    "notifier": frozenset(
        {
            "secret_keys",
            "webhook_networks",
            "public_url",
            "smtp_host",
            "smtp_port",
            "smtp_tls",
            "smtp_user",
            "smtp_password",
            "smtp_ca",
            "mail_from",
            "mail_domains",
        }
    ),
    "gateway": frozenset(
        {
            "linger_ms",
            "spans_from",
            "streams",
            "tenant_streams",
            "key_streams",
            "stream_queue",
            "tenant_rate",
            "tenant_burst",
            "secret_keys",
            "bundles",
            "tenant_bundles_gib",
            "bundles_kept_d",
            "job_logs",
            "terminal_executors",
            "executor_ca",
            "terminal_idle_s",
            "terminal_longest_s",
        }
    )
    | OIDC,
}
"""Settings by service; a test compares them with the services' classes of settings."""
GIVEN_STEPS: Mapping[str, frozenset[str]] = {
    "topics": frozenset(
        {"prompts_kept_h", "tenant_producer_mib_per_s", "tenant_request_percentage"}
    )
}
"""Settings by step."""

OF_EVERY_SERVICE = frozenset({"trace_sample"})
PATHS = frozenset(
    {
        "models",
        "secrets",
        "secret_keys",
        "oidc_ca",
        "executor_ca",
        "upstream_keys",
        "upstream_ca",
        "tokenizers",
        "answers",
        "interaction_key",
        "smtp_ca",
        "slurm_folder",
        "slurm_commands",
        "slurm_hooks",
        "kubernetes_config",
        "ray_folder",
        "ray_token_file",
    }
)
"""Settings that name a file or folder: services run in another directory than `berth up`."""
INHERITED_VARIABLES = (
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "JAVA_HOME",
    "SLURM_CONF",
    "XDG_CACHE_HOME",
    "PYTHONPATH",
    "PYTHONHASHSEED",
    "PYTHONDONTWRITEBYTECODE",
)
"""Variables that services inherit, beside their `given_settings`."""
PREFIX, FILE = "BERTH_", "_FILE"


def given_settings(user: str, environ: Mapping[str, str], *, service: str = "") -> dict[str, str]:
    """Return the variables of the settings of a user's services that are in the environment.

    `BERTH_X_FILE`, a file with the value of `BERTH_X`, counts as well. Nothing else is passed on.
    The settings of an engine are those of one executor alone, which `service` names.
    """
    others = (names for name, names in OF_ENGINES.items() if name != service)
    names = GIVEN.get(user, frozenset()).difference(*others)
    return _passed(names | OF_EVERY_SERVICE, environ)


def given_step_settings(step: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the step's settings that are in the environment."""
    return _passed(GIVEN_STEPS.get(step, frozenset()), environ)


def _passed(names: frozenset[str], environ: Mapping[str, str]) -> dict[str, str]:
    passed: dict[str, str] = {}
    for name in sorted(names):
        variable = PREFIX + name.upper()
        if variable in environ:
            value = environ[variable]
            passed[variable] = str(Path(value).absolute()) if name in PATHS else value
        if variable + FILE in environ:
            passed[variable + FILE] = str(Path(environ[variable + FILE]).absolute())
    return passed
