"""PyTorch's flight recorder: the last collectives of each rank, one dump per rank.

A dump is JSON, or a pickle of plain values (`TORCH_NCCL_DEBUG_INFO_TEMP_FILE`, `_dump_nccl_trace`),
from which nothing but plain values is built. `TORCH_FR_BUFFER_SIZE` turns the recorder on, in
older versions `TORCH_NCCL_TRACE_BUFFER_SIZE`.
"""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

NS = 1e9
CollectiveId = tuple[str, int, str]
"""Process group, number in it, and name: the same on every rank of the group."""


class Collective(NamedTuple):
    """A collective of one rank; times in ns of its own clock."""

    group: str
    seq: int
    name: str
    created_ns: int
    completed_ns: int | None

    @property
    def id(self) -> CollectiveId:
        return self.group, self.seq, self.name


Dumps = Mapping[int, Sequence[Collective]]
"""The collectives of each rank."""


class PlainUnpickler(pickle.Unpickler):
    """Refuses every class and function: a pickle could name any."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        raise pickle.UnpicklingError(f"not a plain value: {module_name}.{global_name}")


def read_dump(data: bytes) -> list[Collective]:
    """Return the collectives of a dump in the order of their creation. Raises ValueError."""
    document = _decoded(data)
    entries = document.get("entries") if isinstance(document, dict) else None
    if not isinstance(entries, list | tuple):
        raise ValueError("flight recorder: no list `entries`; a dump of version 2 has one")
    collectives = [_collective(entry, number) for number, entry in enumerate(entries)]
    present = [collective for collective in collectives if collective is not None]
    return sorted(present, key=lambda collective: collective.created_ns)


def own_times(dumps: Dumps) -> dict[int, list[float]]:
    """Return the s between collectives of each rank, over those that every rank completed.

    From the end of the one before to the creation of the next a rank does work of its own. The
    clocks of the ranks do not matter.
    """
    common = _common(dumps)
    return {
        rank: [sum(_gaps([c for c in collectives if c.id in common]))] if common else []
        for rank, collectives in dumps.items()
    }


def _gaps(collectives: Sequence[Collective]) -> Iterator[float]:
    """Yield the s without a collective in flight; the first one has nothing before it."""
    ended_ns: int | None = None
    for collective in collectives:
        if ended_ns is not None:
            yield max(0, collective.created_ns - ended_ns) / NS
        completed_ns = collective.completed_ns or collective.created_ns
        ended_ns = completed_ns if ended_ns is None else max(ended_ns, completed_ns)


def _common(dumps: Dumps) -> frozenset[CollectiveId]:
    completed = [
        frozenset(c.id for c in collectives if c.completed_ns is not None)
        for collectives in dumps.values()
    ]
    return frozenset.intersection(*completed) if completed else frozenset()


def _decoded(data: bytes) -> Any:
    try:
        if data[:1] == b"{":
            return json.loads(data)
        return PlainUnpickler(io.BytesIO(data)).load()
    except (ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"flight recorder: cannot be decoded: {error}") from None
    except Exception as error:  # a damaged pickle raises errors of every kind
        raise ValueError(f"flight recorder: cannot be unpickled: {error}") from None


def _collective(entry: Any, number: int) -> Collective | None:
    """Return a collective; None for a message between two ranks. Raises ValueError."""
    try:
        if entry.get("is_p2p"):
            return None
        group = entry.get("process_group", entry.get("pg_id", ""))
        completed_ns = entry.get("time_discovered_completed_ns")
        return Collective(
            str(group[0] if isinstance(group, list | tuple) else group),
            int(entry.get("collective_seq_id", entry.get("seq_id"))),
            str(entry["profiling_name"]),
            int(entry["time_created_ns"]),
            None if completed_ns is None else int(completed_ns),
        )
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError(f"flight recorder: entries[{number}]: {error!r}") from None
