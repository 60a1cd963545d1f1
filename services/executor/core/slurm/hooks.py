"""Notes of the scripts that Slurm runs where jobs begin and end (`infra/slurm/hooks`).

A note is a file of one line: `begun.JOB.NODE` and `cleared.JOB.NODE` of Prolog and Epilog have
`uid time_ms`, `ended.JOB` of the job completion has `uid time_ms state exit_code:signal`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import NamedTuple

from services.executor.core.engines.contract import EngineJob, EnginePhase, EngineState
from services.executor.core.slurm.states import failure_of

BEGUN, CLEARED, ENDED = "begun", "cleared", "ended"
NAME = re.compile(rf"({BEGUN}|{CLEARED})\.([0-9]{{1,18}})\.([A-Za-z0-9._-]{{1,253}})")
ENDED_NAME = re.compile(rf"({ENDED})\.([0-9]{{1,18}})()")
LINE = re.compile(rb"([0-9]{1,10}) ([0-9]{1,15})(?: ([A-Z_]{1,32}) ([0-9]{1,5}):([0-9]{1,3}))?\s*")
SETTLE_S = 300.0
"""Time for which a node has to answer that has not noted the end of a job: its slurmd was ordered
to end it when it registered, and drains the node itself where that does not succeed."""
CLOCKS_APART_S = 300
"""Most by which the clock of a node is set while slurmd runs: munge takes no other credential."""


class HookNote(NamedTuple):
    """A note of one job of Slurm on one node, or of its end as a whole."""

    kind: str
    ref: str
    node: str
    at_ms: int
    """By the clock of its machine."""
    state: str = ""
    exit_code: int = 0
    """128 + signal if a signal ended the job."""


def notes_of(files: Mapping[str, bytes], uids: Set[int]) -> list[HookNote]:
    """Return the notes of jobs of these users, the oldest first.

    Anyone can give a job the comment of another: the notes of other users' jobs are none.
    """
    notes = (_note(name, line, uids) for name, line in files.items())
    return sorted((note for note in notes if note is not None), key=lambda note: note.at_ms)


def _note(name: str, line: bytes, uids: Set[int]) -> HookNote | None:
    of_file, match = NAME.fullmatch(name) or ENDED_NAME.fullmatch(name), LINE.fullmatch(line)
    if of_file is None or match is None or int(match[1]) not in uids:
        return None
    kind, ref, node = of_file.groups()
    if kind != ENDED:
        return HookNote(kind, ref, node, int(match[2]))
    if match[3] is None:
        return None
    signal = int(match[5])
    code = 128 + signal if signal else int(match[4])
    return HookNote(kind, ref, node, int(match[2]), match[3].decode(), code)


def cleared_nodes(notes: Iterable[HookNote], booted_s: Mapping[str, int]) -> frozenset[str]:
    """Return the nodes on which no process of the jobs lives; `booted_s` are times of boots.

    Slurm runs the Epilog once all processes of a job have ended on its node. A machine that has
    booted since runs none.
    """
    of_nodes = [note for note in notes if note.kind != ENDED]
    cleared_ms = {(note.node, note.ref): note.at_ms for note in of_nodes if note.kind == CLEARED}
    held = {
        note.node
        for note in of_nodes
        if note.kind == BEGUN
        # Slurm may have queued the job again: then it began once more after its end.
        and cleared_ms.get((note.node, note.ref), 0) < note.at_ms
        and booted_s.get(note.node, 0) * 1000 <= note.at_ms + CLOCKS_APART_S * 1000
    }
    return frozenset(note.node for note in of_nodes) - held


def ended_job(identity: str, notes: Iterable[HookNote]) -> EngineJob | None:
    """Return the job of a gang as slurmctld noted its end, which it may have forgotten since.

    None without such a note. The note is written before the processes have ended.
    """
    ended = [note for note in notes if note.kind == ENDED]
    if not ended:
        return None
    last = ended[-1]
    owner = f"Slurm job {last.ref}"
    return EngineJob(
        ref=last.ref,
        identity=identity,
        phase=EnginePhase.ENDED,
        owner=owner,
        failure=failure_of({last.state}, owner, ""),
        exit_code=last.exit_code,
        lost_node=True,
    )


def lost_gangs(state: EngineState) -> list[str]:
    """Return the gangs that Slurm does not know any more, or of which it gave up a node."""
    lost = []
    for identity in state.progress:
        jobs = state.jobs_of(identity)
        if not jobs or (jobs[-1].lost_node and jobs[-1].phase is EnginePhase.ENDED):
            lost.append(identity)
    return lost


def with_notes(state: EngineState, notes: Mapping[str, list[HookNote]]) -> EngineState:
    """Return a look with what is noted of lost gangs, which are the keys of `notes`."""
    boots = {name: node.boot_id for name, node in state.nodes.items()}
    booted_s = {name: int(boot) for name, boot in boots.items() if boot.isdecimal()}
    progress, ended = dict(state.progress), []
    for identity, of_gang in notes.items():
        cleared = cleared_nodes(of_gang, booted_s)
        progress[identity] = replace(progress[identity], cleared=cleared, settle_s=SETTLE_S)
        job = ended_job(identity, of_gang)
        if job is not None and not state.jobs_of(identity):
            ended.append(job)
    return replace(state, jobs=(*state.jobs, *ended), progress=progress)
