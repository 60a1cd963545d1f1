"""A filter of system calls for programs of jobs, as containers have one.

It refuses what an ordinary user needs no more than once in a while, and through which kernels were
taken over again and again: new namespaces and mounts, `bpf`, `io_uring`, keys, modules. Numbers are
those of `asm/unistd.h`; the choice follows the default profile of Docker, without its rules for
NUMA, `ptrace` and `process_vm_readv`, which trainings and debuggers use.
"""

from __future__ import annotations

import errno
import os
from _ctypes import addressof

from berth_agent.linux.libc import check, function, in_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

REFUSED = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pivot_root": (155, 41),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}
"""Number by architecture, of x86-64 and of arm64; None: it has no such call."""
CLONE, CLONE3 = (56, 220), (435, 435)
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Column of the numbers, and the constant of `linux/audit.h`."""
NAMESPACES = 0x7E020000
"""Flags of clone that make a namespace."""
X32 = 0x40000000
"""Bit of the calls of x32, an x86-64 with short pointers."""

LOAD, JUMP_IF_EQUAL, JUMP_IF_AT_LEAST, JUMP_IF_ANY, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER_AT, ARCHITECTURE_AT, FIRST_ARGUMENT_AT = 0, 4, 16
ALLOW, KILL, FAIL = 0x7FFF0000, 0x80000000, 0x00050000
INSTRUCTION_BYTES = 8
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER = 22, 38, 2

_prctl = function("prctl")


def is_known(machine: str) -> bool:
    """Return whether there is a filter for this architecture, as `uname` names it."""
    return machine in ARCHITECTURES


def install() -> None:
    """Filter the calls of this process and of all that it starts, for good.

    It gains no rights by programs any more, either, as those of `sudo`. Raises OSError.
    """
    code = program(os.uname().machine)
    instructions = in_memory(code)
    length = len(code) // INSTRUCTION_BYTES
    header = length.to_bytes(2, "little") + bytes(6) + addressof(instructions).to_bytes(8, "little")
    check(_prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    check(_prctl(PR_SET_SECCOMP, FILTER, header))


def program(machine: str) -> bytes:
    """Return the filter in classic BPF. Raises OSError for an unknown architecture."""
    if machine not in ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no filter of system calls for {machine}")
    return b"".join(_instructions(*ARCHITECTURES[machine]))


def _instructions(column: int, architecture: int) -> Iterator[bytes]:
    """Yield the instructions: a jump counts those that it passes over."""
    yield _instruction(LOAD, ARCHITECTURE_AT)
    yield _instruction(JUMP_IF_EQUAL, architecture, 1, 0)
    yield _instruction(RETURN, KILL)
    yield _instruction(LOAD, NUMBER_AT)
    yield _instruction(JUMP_IF_AT_LEAST, X32, 0, 1)
    yield _fail(errno.ENOSYS)
    # Its flags are in memory, where a filter cannot look: the C library falls back to clone.
    yield _instruction(JUMP_IF_EQUAL, CLONE3[column], 0, 1)
    yield _fail(errno.ENOSYS)
    for numbers in REFUSED.values():
        if (number := numbers[column]) is not None:
            yield _instruction(JUMP_IF_EQUAL, number, 0, 1)
            yield _fail(errno.EPERM)
    yield _instruction(JUMP_IF_EQUAL, CLONE[column], 0, 3)
    yield _instruction(LOAD, FIRST_ARGUMENT_AT)
    yield _instruction(JUMP_IF_ANY, NAMESPACES, 0, 1)
    yield _fail(errno.EPERM)
    yield _instruction(RETURN, ALLOW)


def _fail(number: int) -> bytes:
    return _instruction(RETURN, FAIL | number)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return code.to_bytes(2, "little") + bytes((if_true, if_false)) + value.to_bytes(4, "little")
