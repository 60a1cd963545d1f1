"""`python -m tests.fuzz.bytes_fuzzer TARGET...`: atheris, one process per target; a JSON line each.

The code under test is instrumented once, then each target is fuzzed in a process of its own:
libFuzzer ends the process it runs in.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["services", "shared"], enable_loader_override=False):
    from tests.fuzz.targets import TARGETS

from tests.fuzz.corpus import corpus

LONGEST_BYTES = 4096
SLOW_S = 10
MEMORY_MIB = 2048
TAIL = 3000
COUNT = re.compile(r"stat::number_of_executed_units:\s+(\d+)|#(\d+)\s+DONE")
COVERED = re.compile(r"#\d+\s+(?:DONE|pulse|NEW|REDUCE|INITED).*?ft: (\d+)")
WORDS = (
    '"specversion"',
    '"1.0"',
    '"data"',
    '"spec"',
    '"name"',
    '"gang"',
    '"job_id"',
    '"tenant"',
    '"type"',
    '"job.submit.v1"',
    '"job.cancel.v1"',
    '"time"',
    '"ev"',
    '"seq"',
    '"prev"',
    '"in"',
    '"messages"',
    '"content"',
    '"model"',
    '"prompt"',
    '"max_tokens"',
    '"resourceSpans"',
    '"attributes"',
    '"traceId"',
    "\\\\u0000",
    "\\\\ud800",
    "9223372036854775808",
    "1e999",
    "\\xff",
    "\\xef\\xbb\\xbf",
    "null",
    "true",
    "-0.0",
    "[[",
    "}}",
)


def fuzz(target: str, folder: Path, limits: Sequence[str]) -> dict[str, object]:
    """Fuzz one target in a child process; return its counts and the first failing input."""
    began = time.monotonic()
    log = folder / "log"
    child = os.fork()
    if child == 0:
        try:
            _become(target, folder, log, limits)
        except BaseException:
            # No exception may unwind into the code of the parent.
            os._exit(1)
    _, status = os.waitpid(child, 0)
    output = log.read_text(errors="replace")
    counts = [int(a or b) for a, b in COUNT.findall(output)]
    covered = COVERED.findall(output)
    inputs = sorted(path for path in folder.glob("found-*"))
    return {
        "target": target,
        "runs": max(counts, default=0),
        "features": int(covered[-1]) if covered else 0,
        "seconds": round(time.monotonic() - began, 1),
        "failed": bool(status) or bool(inputs),
        "input": inputs[0].read_bytes()[:LONGEST_BYTES].hex() if inputs else "",
        "said": output[-TAIL:] if status or inputs else "",
    }


def _become(target: str, folder: Path, log: Path, limits: Sequence[str]) -> None:
    """Turn this process into the fuzzer of a target; never return."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(out, 1)
    os.dup2(out, 2)
    (folder / "words").write_text("\n".join(f'"{_escaped(word)}"' for word in WORDS) + "\n")
    start = folder / "corpus"
    start.mkdir()
    for _, value in corpus(target):
        if len(value) <= LONGEST_BYTES:
            (start / hashlib.sha256(value).hexdigest()[:16]).write_bytes(value)
    atheris.Setup(
        [
            sys.argv[0],
            f"-artifact_prefix={folder}/found-",
            f"-max_len={LONGEST_BYTES}",
            f"-timeout={SLOW_S}",
            f"-rss_limit_mb={MEMORY_MIB}",
            f"-dict={folder}/words",
            "-print_final_stats=1",
            *limits,
            str(start),
        ],
        _kept(TARGETS[target], folder),
    )
    atheris.Fuzz()
    os._exit(0)


def _escaped(word: str) -> str:
    return word.replace('"', '\\"')


def _kept(target: Callable[[bytes], None], folder: Path) -> Callable[[bytes], None]:
    """Keep an input that raises: without the sanitizers' runtime libFuzzer does not."""

    def once(data: bytes) -> None:
        try:
            target(data)
        except BaseException:
            (folder / "found-by-us").write_bytes(data)
            raise

    return once


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.bytes_fuzzer", description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], help="all, if none is named")
    parser.add_argument("--seconds", type=int, default=0, help="for each; 0: no limit of time")
    parser.add_argument("--runs", type=int, default=0, help="of each; 0: no limit")
    parser.add_argument("--seed", type=int, default=1, help="of chance")
    options = parser.parse_args()
    limits = [f"-seed={options.seed}"]
    limits += [f"-max_total_time={options.seconds}"] if options.seconds else []
    limits += [f"-runs={options.runs}"] if options.runs else []
    failed = False
    for target in options.targets or TARGETS:
        with tempfile.TemporaryDirectory(prefix="berth-fuzz-") as name:
            result = fuzz(target, Path(name), limits)
        failed |= bool(result["failed"])
        print(json.dumps(result), flush=True)  # noqa: T201
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
