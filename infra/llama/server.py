"""Starts llama.cpp's server with the model of random weights."""

from __future__ import annotations

import os
import subprocess
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from infra.llama.packages import LlamaMissing, fetch
from infra.machine.environments import EnvironmentMissing, environment, python_of
from infra.machine.maven import cache_dir
from infra.machine.process import DidNotStart, Running, free_ports, spawn

ROOT = Path(__file__).parents[2]
PACKAGES = ("gguf", "numpy", "tokenizers")
START_S = 60.0
MODEL_S = 120.0
LIBRARIES = "usr/lib/x86_64-linux-gnu"


@dataclass(frozen=True, slots=True)
class LlamaServer:
    """A running engine; it serves whatever model a request names."""

    running: Running
    url: str
    tokenizer: Path
    """Its tokenizer, as an endpoint can name it."""

    def stop(self) -> None:
        self.running.stop()


def start(
    folder: Path, slots: int = 4, tokens_per_slot: int = 4096, threads: int = 1
) -> LlamaServer:
    """Start an engine that writes its log into `folder`.

    Raises LlamaMissing where it cannot be had, DidNotStart if it does not start.
    """
    root, model = fetch(), random_model()
    (port,) = free_ports(1)
    options = {
        "-m": model,
        "--host": "127.0.0.1",
        "--port": port,
        "-np": slots,
        "-c": slots * tokens_per_slot,
        "-t": threads,
        "--pooling": "mean",
    }
    flat = [str(part) for pair in options.items() for part in pair]
    command = [*_program(root), *flat, "--metrics", "--embeddings", "--slots", "--no-webui"]
    running = spawn("llama-server", command, folder / "llama-server.log", _variables(root))
    url = f"http://127.0.0.1:{port}"
    running.wait_ready(lambda: _is_healthy(url), START_S)
    return LlamaServer(running, url, model.with_suffix(".tokenizer.json"))


def random_model() -> Path:
    """Return the file of the model, written on first use. Raises LlamaMissing."""
    path = cache_dir("random-model") / "random.gguf"
    if path.is_file():
        return path
    try:
        folder = environment("gguf", PACKAGES)
    except EnvironmentMissing as error:
        raise LlamaMissing(str(error)) from None
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"draft-{os.getpid()}.gguf")
    script = Path(__file__).with_name("random_model.py")
    command = [str(python_of(folder)), str(script), str(draft), str(ROOT / "docs")]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=MODEL_S, text=True)
    except subprocess.CalledProcessError as error:
        raise DidNotStart(f"random_model: {error.stderr.strip()[-500:]}") from None
    draft.with_suffix(".tokenizer.json").replace(path.with_suffix(".tokenizer.json"))
    draft.replace(path)
    return path


def _program(root: Path) -> list[str]:
    """Return the command: its own loader runs it with the libraries that came with it."""
    libraries = root / LIBRARIES
    folders = ":".join(str(f) for f in (libraries, libraries / "llama", libraries / "ggml"))
    loader = libraries / "ld-linux-x86-64.so.2"
    return [str(loader), "--library-path", folders, str(root / "usr/bin/llama-server")]


def _variables(root: Path) -> dict[str, str]:
    """Return the variable that names the backend for any x86-64 processor."""
    backend = root / LIBRARIES / "ggml/backends0/libggml-cpu-x64.so"
    return {"GGML_BACKEND_PATH": str(backend)}


def _is_healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=2) as answer:
            return int(answer.status) == 200
    except OSError:
        return False
