"""The program of a validation, whose text is the argument of `python3 -c` on each node.

It measures this node, then exchanges data with its neighbours in the rounds that it is given, and
reports each measurement on the worker's own socket. Standard library only, Python 3.9 or newer.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import socket
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TextIO

    Measured = tuple[float, float]
    """s of a part without the wait for a processor, and s of that wait."""

PROCESSOR, MEMORY, FIRST_GPU, FIRST_LINK = 0, 1, 16, 1024
REPEATS = 5
ROUNDS = 100_000
"""Of the computation on a processor: longer than a worker that is stopped in turns runs at once."""
SCHEDSTAT = "/proc/thread-self/schedstat"
MIB = 2**20
# A loop of fused multiply-adds; the store, which never happens, keeps it from being removed.
PTX = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry burst(.param .u64 to, .param .u32 n)
{
.reg .pred %p<3>; .reg .f32 %f<3>; .reg .u32 %r<3>; .reg .u64 %d<2>;
ld.param.u64 %d1, [to];
ld.param.u32 %r1, [n];
mov.u32 %r2, 0;
mov.f32 %f1, 0f3F000000;
mov.f32 %f2, 0f3F800000;
L:
fma.rn.f32 %f2, %f2, %f1, %f1;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p1, %r2, %r1;
@%p1 bra L;
setp.lt.f32 %p2, %f2, %f1;
@%p2 st.global.f32 [%d1], %f2;
ret;
}
"""


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def least_s(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the shortest of several times: one that was interrupted took longer."""
    times_s = []
    for _ in range(repeats):
        begin_s = time.perf_counter()
        work()
        times_s.append(time.perf_counter() - begin_s)
    return max(min(times_s), 1e-9)


def waited_s() -> float:
    """Return s for which this thread has waited for a processor; 0 where they are not counted."""
    try:
        with open(SCHEDSTAT) as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def without_waiting(work: Callable[[], object]) -> Measured:
    """Return the median time of several without the wait for a processor, and the least wait.

    Other work on the host makes every time longer, which says nothing about the processor.
    """
    times_s: list[float] = []
    waits_s: list[float] = []
    for _ in range(REPEATS):
        begin_s, waited_before_s = time.perf_counter(), waited_s()
        work()
        wait_s = waited_s() - waited_before_s
        times_s.append(max(time.perf_counter() - begin_s - wait_s, 1e-9))
        waits_s.append(wait_s)
    return sorted(times_s)[REPEATS // 2], max(min(waits_s), 0.0)


def gpu_times(rounds: int = 2_000_000, library: str = "libcuda.so.1") -> dict[int, float]:
    """Return s of a computation on each GPU that the worker sees; none without a driver."""
    try:
        cuda = ctypes.CDLL(library)
    except OSError:
        return {}

    def call(name: str, *arguments: object) -> None:
        if code := getattr(cuda, name)(*arguments):
            raise OSError(f"{name}: error {code} of the CUDA driver")

    times_s: dict[int, float] = {}
    count = ctypes.c_int()
    call("cuInit", 0)
    call("cuDeviceGetCount", ctypes.byref(count))
    for number in range(count.value):
        device = ctypes.c_int()
        context, module, kernel = (ctypes.c_void_p() for _ in range(3))
        call("cuDeviceGet", ctypes.byref(device), number)
        call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
        call("cuModuleLoadData", ctypes.byref(module), PTX)
        call("cuModuleGetFunction", ctypes.byref(kernel), module, b"burst")
        values = ctypes.c_uint64(0), ctypes.c_uint32(rounds)
        pointers = (ctypes.c_void_p * 2)(*(ctypes.addressof(value) for value in values))

        def burst(kernel: object = kernel, pointers: object = pointers) -> None:
            call("cuLaunchKernel", kernel, 1024, 1, 1, 256, 1, 1, 0, None, pointers, None)
            call("cuCtxSynchronize")

        burst()
        times_s[FIRST_GPU + number] = least_s(burst)
        call("cuCtxDestroy_v2", context)
    return times_s


class Peers:
    """The workers of the gang: rank 0 says when a round begins, and which rank is where."""

    def __init__(self, plan: dict[str, Any], rank: int, size: int) -> None:
        self.plan, self.rank = plan, rank
        self.lines: dict[int, TextIO] = {}
        self.data = socket.create_server(("", 0), backlog=size)
        self.data.settimeout(plan["wait_s"])
        address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        port = self.data.getsockname()[1]
        if rank:
            self._join(address, port)
            return
        self.places: dict[int, tuple[str, int]] = {0: (address[0], port)}
        with socket.create_server(("", address[1]), backlog=size) as server:
            server.settimeout(plan["wait_s"])
            while len(self.places) < size:
                joined = server.accept()[0]
                joined.settimeout(plan["wait_s"])
                lines = joined.makefile("rw")
                with contextlib.suppress(ValueError, KeyError, OSError):
                    hello = json.loads(lines.readline(4096))
                    if hello["token"] == plan["token"]:
                        self.lines[hello["rank"]] = lines
                        self.places[hello["rank"]] = (hello["host"], hello["port"])
        self.write_to_all({"places": self.places})

    def _join(self, address: tuple[str, int], port: int) -> None:
        ends_s = time.monotonic() + self.plan["wait_s"]
        while True:
            try:
                joined = socket.create_connection(address, self.plan["wait_s"])
                break
            except OSError:
                if time.monotonic() > ends_s:
                    raise
                time.sleep(0.1)
        self.lines[0] = joined.makefile("rw")
        host = joined.getsockname()[0]
        hello = {"token": self.plan["token"], "rank": self.rank, "host": host, "port": port}
        self.write_to_all(hello)
        places = json.loads(self.lines[0].readline())["places"]
        self.places = {int(rank): tuple(place) for rank, place in places.items()}

    def write_to_all(self, message: dict[str, Any]) -> None:
        for lines in self.lines.values():
            lines.write(json.dumps(message) + "\n")
            lines.flush()

    def meet(self) -> None:
        """Return once all workers are here."""
        if self.rank:
            self.write_to_all({})
        for lines in self.lines.values():
            if not lines.readline():
                raise OSError("another worker of the validation has ended")
        if not self.rank:
            self.write_to_all({})

    def send(self, to: int) -> float:
        """Return s of the transfer to a rank."""
        with socket.create_connection(self.places[to], self.plan["wait_s"]) as link:
            link.sendall(self.plan["token"].encode())
            block = bytes(MIB)

            def transfer() -> None:
                for _ in range(self.plan["mib"]):
                    link.sendall(block)
                if not link.recv(1):
                    raise OSError("the receiver has ended")

            return least_s(transfer)

    def receive(self) -> None:
        """Take the transfers of one sender, and acknowledge each."""
        token = self.plan["token"].encode()
        while True:
            link = self.data.accept()[0]
            with link:
                link.settimeout(self.plan["wait_s"])
                if link.recv(len(token), socket.MSG_WAITALL) != token:
                    continue
                buffer = bytearray(MIB)
                for _ in range(REPEATS):
                    left = self.plan["mib"] * MIB
                    while left:
                        count = link.recv_into(buffer, min(left, MIB))
                        if not count:
                            raise OSError("the sender has ended")
                        left -= count
                    link.sendall(b"+")
                return


def links(plan: dict[str, Any], rank: int, size: int) -> dict[int, float]:
    """Return s of the transfer to each neighbour, measured in rounds."""
    peers = Peers(plan, rank, size)
    times_s: dict[int, float] = {}
    for pairs in plan["rounds"]:
        peers.meet()
        for sender, receiver in pairs:
            try:
                if rank == sender:
                    times_s[FIRST_LINK + receiver] = peers.send(receiver)
                elif rank == receiver:
                    peers.receive()
            except OSError as error:
                say(f"no transfer from rank {sender} to rank {receiver}: {error}")
    peers.meet()
    return times_s


def report(measured: dict[int, Measured], rank: int) -> None:
    """Print the measurements, and send them three times: a datagram may be lost."""
    for part, (time_s, wait_s) in measured.items():
        say(f"part {part}: {time_s:.6f} s, {wait_s:.6f} s of waiting for a processor")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        head = {"v": 1, "token": os.environ["BERTH_TELEMETRY_TOKEN"], "rank": rank}
        for _ in range(3):
            for part, (time_s, wait_s) in measured.items():
                row = {**head, "step": part, "iteration_s": time_s + wait_s, "delay_s": wait_s}
                sender.sendto(json.dumps(row).encode(), os.environ["BERTH_TELEMETRY"])
            time.sleep(1)


def main() -> None:
    plan = json.loads(sys.argv[1])
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    source = bytearray(32 * MIB)
    measured = {
        PROCESSOR: without_waiting(
            lambda: hashlib.pbkdf2_hmac("sha256", b"probe", b"node", ROUNDS)
        ),
        MEMORY: without_waiting(lambda: bytes(source)),
    }
    try:
        measured.update({part: (time_s, 0.0) for part, time_s in gpu_times().items()})
    except (OSError, AttributeError) as error:
        say(f"no GPU measured: {error}")
    try:
        measured.update({part: (time_s, 0.0) for part, time_s in links(plan, rank, size).items()})
    except (OSError, ValueError) as error:
        say(f"no links measured: {error}")
    report(measured, rank)


if __name__ == "__main__":
    main()
