"""The LiteLLM proxy from PyPI, in an environment of its own in the cache folder."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from benchmarks.parts.proxy.site import MODEL
from infra.machine.environments import environment, python_of
from infra.machine.process import Running, is_open, spawn

PACKAGE = "litellm[proxy]"
START_S = 120.0


def install() -> Path:
    """Return the folder of the environment, made on first use. Raises EnvironmentMissing."""
    return environment("litellm", (PACKAGE,))


def version(folder: Path) -> str:
    shown = subprocess.run(
        [str(python_of(folder)), "-m", "pip", "show", "litellm"],
        check=True,
        capture_output=True,
        text=True,
    )
    lines = (line.partition(": ") for line in shown.stdout.splitlines())
    return next((value for name, _, value in lines if name == "Version"), "")


def start(folder: Path, engine_url: str, port: int, key: str, logs: Path) -> Running:
    """Start the proxy before the engine; it checks the one key. Raises DidNotStart."""
    config = logs / "litellm.json"
    config.write_text(json.dumps(_configuration(engine_url, key)))
    command = [str(folder / "bin/litellm"), "--config", str(config), "--port", str(port)]
    environment = {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "HOME": str(Path.home()),
        "LITELLM_LOG": "ERROR",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    options = ["--host", "127.0.0.1", "--num_workers", "1", "--telemetry", "False"]
    running = spawn("litellm", [*command, *options], logs / "litellm.log", environment)
    running.wait_ready(lambda: is_open(port), START_S)
    return running


def _configuration(engine_url: str, key: str) -> dict[str, object]:
    """Return the configuration as JSON, which is YAML too."""
    upstream = {"model": f"openai/{MODEL}", "api_base": f"{engine_url}/v1", "api_key": "none"}
    return {
        "model_list": [{"model_name": MODEL, "litellm_params": upstream}],
        "general_settings": {"master_key": key},
    }
