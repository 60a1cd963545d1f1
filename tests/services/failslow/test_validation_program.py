"""The program of a validation on this machine, and its computation on GPUs by a stub of CUDA."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from berth_agent.telemetry_receiver import TelemetryReceiver
from infra.machine.process import free_ports
from services.failslow import validation_program
from services.failslow.validation_job import program
from services.failslow.validation_program import FIRST_GPU, gpu_times, waited_s, without_waiting
from shared.contracts import validation

pytestmark = pytest.mark.process

RANKS = 3
STUB = """
static int contexts, launches;
int cuInit(unsigned flags) { return 0; }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuDeviceGet(int *device, int number) { *device = number; return 0; }
int cuCtxCreate_v2(void **context, unsigned flags, int device)
{ *context = &contexts; return contexts++; }
int cuCtxDestroy_v2(void *context) { contexts--; return 0; }
int cuModuleLoadData(void **module, const char *text) 
{ *module = &launches; return text[1] != '.'; }
int cuModuleGetFunction(void **kernel, void *module, const char *name)
{ *kernel = module; return name[0] != 'b'; }
int cuLaunchKernel(void *kernel, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e,
                   unsigned f, unsigned g, void *stream, void **values, void **extra)
{ return !(kernel == &launches && a == 1024 && d == 256 && *(unsigned *)values[1] == ROUNDS); }
int cuCtxSynchronize(void) { return 0; }
"""


def test_numbers_of_parts_are_those_of_the_contract() -> None:
    names = ("PROCESSOR", "MEMORY", "FIRST_GPU", "FIRST_LINK")
    own = [getattr(validation_program, name) for name in names]
    assert own == [getattr(validation, name) for name in names]


def test_workers_measure_themselves_and_their_ring_and_report_it(tmp_path: Path) -> None:
    command = program(RANKS)
    plan = {**json.loads(command[3]), "mib": 4}
    (port,) = free_ports(1)
    sockets = [
        TelemetryReceiver(str(tmp_path / f"{rank}.sock"), f"token-{rank}", f"0/1/0/{rank}")
        for rank in range(RANKS)
    ]
    workers = [
        subprocess.Popen(
            [sys.executable, "-I", "-c", command[2], json.dumps(plan)],
            env={
                **os.environ,
                "RANK": str(rank),
                "WORLD_SIZE": str(RANKS),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "BERTH_TELEMETRY": str(tmp_path / f"{rank}.sock"),
                "BERTH_TELEMETRY_TOKEN": f"token-{rank}",
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(RANKS)
    ]
    outputs = [worker.communicate(timeout=60)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * RANKS, outputs
    for rank, receiver in enumerate(sockets):
        rows = receiver.take_iterations()[rank].message("0/1/0/0", 0, rank)
        measured = dict(zip(rows.steps, rows.iteration_s, strict=True))
        link = validation.FIRST_LINK + (rank + 1) % RANKS
        assert {validation.PROCESSOR, validation.MEMORY, link} <= measured.keys(), outputs
        assert all(time_s > 0 for time_s in measured.values())
        receiver.close()


def test_the_middle_time_without_the_wait_for_a_processor_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Times and waits are s; the third time was interrupted by something else."""
    passed = {"wall": 0.0, "waited": 0.0}
    repeats = iter([(1.0, 5.0), (1.25, 0.5), (9.0, 2.0), (1.0, 3.0), (1.5, 4.0)])

    def work() -> None:
        own_s, wait_s = next(repeats)
        passed["wall"] += own_s + wait_s
        passed["waited"] += wait_s

    clock = SimpleNamespace(perf_counter=lambda: passed["wall"])
    monkeypatch.setattr(validation_program, "time", clock)
    monkeypatch.setattr(validation_program, "waited_s", lambda: passed["waited"])
    assert without_waiting(work) == (1.25, 0.5)


def test_an_uncounted_wait_for_a_processor_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation_program, "SCHEDSTAT", "/proc/none")
    assert waited_s() == 0.0


def test_each_gpu_runs_the_same_computation(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    source, library = tmp_path / "stub.c", tmp_path / "libcuda.so"
    source.write_text(STUB.replace("ROUNDS", "7"))
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    assert gpu_times(7, str(library)).keys() == {FIRST_GPU, FIRST_GPU + 1}
    assert gpu_times(7, str(tmp_path / "missing.so")) == {}
    with pytest.raises(OSError, match="cuLaunchKernel: error 1"):
        gpu_times(8, str(library))
