"""The calls that a filtered program may make, by the kernel and by the numbers of its headers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from berth_agent.linux import seccomp

HEADER = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
USED = "from berth_agent.linux import seccomp, syscalls\nimport os\nseccomp.install()\n"


def ran(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", USED + code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.process
@pytest.mark.parametrize(
    "call",
    [
        "syscalls.unshare(syscalls.CLONE_NEWUSER)",
        "syscalls.unshare_mounts()",
        "syscalls.bind('/tmp', '/tmp')",
        "syscalls.enter_namespace(os.open('/proc/self/ns/mnt', 0), 0)",
    ],
)
def test_namespaces_and_mounts_are_refused_to_root_too(call: str) -> None:
    assert "PermissionError" in ran(call).stderr


@pytest.mark.process
def test_a_namespace_by_clone_is_refused() -> None:
    """As `clone` by its number: glibc's wrapper wants a stack."""
    number = seccomp.CLONE[seccomp.ARCHITECTURES[os.uname().machine][0]]
    code = (
        "import ctypes\nlibrary = ctypes.CDLL(None, use_errno=True)\n"
        f"assert library.syscall({number}, 0x10000000 | 17, 0, 0, 0, 0) == -1\n"
        "print(ctypes.get_errno())"
    )
    assert ran(code).stdout == "1\n"


@pytest.mark.process
def test_programs_threads_and_files_work_and_no_rights_are_gained() -> None:
    done = ran(
        "import subprocess, threading\n"
        "thread = threading.Thread(target=print, args=('thread',), daemon=True)\n"
        "thread.start(); thread.join()\n"
        "print(subprocess.check_output(['echo', 'program'], text=True), end='')\n"
        "print(*[line for line in open('/proc/self/status') if 'NoNewPrivs' in line], end='')"
    )
    assert done.stdout.split() == ["thread", "program", "NoNewPrivs:", "1"], done.stderr


def test_the_numbers_are_those_of_the_kernel() -> None:
    if not HEADER.exists():
        pytest.skip("no headers of the kernel for x86-64 here")
    known = dict(re.findall(r"#define __NR_(\w+)\s+(\d+)", HEADER.read_text()))
    named = {**seccomp.REFUSED, "clone": seccomp.CLONE, "clone3": seccomp.CLONE3}
    assert {name: numbers[0] for name, numbers in named.items()} == {
        name: int(known[name]) for name in named
    }


def test_jumps_of_a_filter_stay_in_it() -> None:
    for machine in seccomp.ARCHITECTURES:
        code = seccomp.program(machine)
        steps = [code[at : at + 8] for at in range(0, len(code), seccomp.INSTRUCTION_BYTES)]
        assert all(
            at + 1 + max(step[2], step[3]) < len(steps) for at, step in enumerate(steps[:-1])
        )
        assert steps[-1][0] == seccomp.RETURN


def test_an_unknown_architecture_has_no_filter() -> None:
    with pytest.raises(OSError, match="no filter of system calls for riscv64"):
        seccomp.program("riscv64")
    assert not seccomp.is_known("riscv64") and seccomp.is_known("aarch64")
