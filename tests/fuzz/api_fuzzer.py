"""Schemathesis over the OpenAPI document of a running gateway."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
STREAMS = "/v1/events$"
"""Streams never end; `test_api` reads them itself."""
SPANS = "/v1/traces$"
"""Protobuf, which OpenAPI cannot describe: the target `otlp` is for it."""
TOKENS = "/v1/nodes/tokens$"
SECRETS = r"/v1/secrets/(\{name\}|rotate)$"
"""Answered by the service access, which does not run here, as TOKENS are. A secret may be named
`rotate`, so that path has the methods of both."""
WEBHOOKS = r"/v1/webhooks|/v1/users(/|$)"
"""Answered by access too: `test_webhooks.py` has the faults of both."""
TERMINALS = "/terminal$"
"""A body of frames in both directions: `test_terminals.py` has their faults."""
NOT_CHECKED = "positive_data_acceptance,ensure_resource_availability,use_after_free"
"""A body that obeys its schema may name an unknown pool: that is a 422 with the field. And what a
202 has accepted is there, or gone, a little later."""
ALL_PHASES = "examples,coverage,fuzzing,stateful"
EVERY_WRONG_TYPE = "BERTH_FUZZ_EVERY_WRONG_TYPE"
"""Variable that is set where each field gets values of every wrong type."""
LEFT_OUT = f"{STREAMS}|{SPANS}|{TOKENS}|{SECRETS}|{WEBHOOKS}|{TERMINALS}"
GROUPS = ("^/v1/jobs", "^/v1/(pools|endpoints)")
"""Routes with two thirds of the cases, each fuzzed by a process beside that of all other routes: a
process waits for each answer. Schemathesis' own threads end with a SystemError of Python 3.11."""
DOCUMENT = "openapi.json"
GENERATED = re.compile(r"(\d+) generated")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run; `text` is the whole report of Schemathesis."""

    cases: int
    ok: bool
    text: str


def fuzz(
    url: str,
    key: str,
    examples: int,
    phases: str = ALL_PHASES,
    *,
    tenant: str = "",
    seed: int = 1,
    whole: bool = True,
) -> Outcome:
    """Run all checks but those above, with `examples` per operation in the random phases.

    With a `tenant`, the key is one of ada's, and no answer may contain the canary of bob. Without
    `whole` fields get a part of the wrong types, and no request follows from an answer to another
    group.
    """
    options = [
        "--header",
        f"Authorization: Bearer {key}",
        "--max-examples",
        str(examples),
        "--seed",
        str(seed),
        "--phases",
        phases,
    ]
    env = {
        **os.environ,
        "SCHEMATHESIS_HOOKS": "tests.fuzz.api_hooks",
        "PYTHONPATH": str(ROOT),
        "BERTH_FUZZ_TENANT": tenant,
        **({EVERY_WRONG_TYPE: "1"} if whole else {}),
    }
    groups = [["--exclude-path-regex", LEFT_OUT]]
    if not whole:
        groups = [["--exclude-path-regex", "|".join((LEFT_OUT, *GROUPS))]]
        groups += (["--include-path-regex", g, "--exclude-path-regex", LEFT_OUT] for g in GROUPS)
    # Read once: the timeout of Schemathesis' own read is 10 s.
    with urllib.request.urlopen(f"{url}/openapi.json", timeout=PATIENCE_S) as answer:
        document = answer.read().decode()
    with ThreadPoolExecutor(len(groups)) as pool:
        runs = pool.map(lambda group: _run(url, document, [*options, *group], env), groups)
        outcomes = list(runs)
    return Outcome(
        sum(outcome.cases for outcome in outcomes),
        all(outcome.ok for outcome in outcomes),
        "\n".join(outcome.text for outcome in outcomes if not outcome.ok),
    )


def _run(url: str, document: str, options: list[str], env: dict[str, str]) -> Outcome:
    """Run Schemathesis in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="berth-fuzz-") as name:
        config = Path(name) / "schemathesis.toml"
        config.write_text("")
        (Path(name) / DOCUMENT).write_text(document)
        command = [
            sys.executable,
            "-m",
            "schemathesis.cli",
            "--config-file",
            str(config),
            "run",
            DOCUMENT,
            "--url",
            url,
            *options,
            "--checks",
            "all",
            "--exclude-checks",
            NOT_CHECKED,
            "--generation-database",
            "none",
            "--request-timeout",
            "20",
            "--no-color",
        ]
        done = subprocess.run(
            command, cwd=name, env=env, capture_output=True, text=True, check=False
        )
    cases = GENERATED.search(done.stdout)
    return Outcome(
        int(cases[1]) if cases else 0, done.returncode == 0, done.stdout + done.stderr[-2000:]
    )
