"""Backend `slurm`: one allocation of Slurm per gang, by the commands of Slurm."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from services.executor.core.engines.contract import (
    Action,
    EngineState,
    Forbid,
    GangProgress,
    Kill,
    Signal,
    Start,
    Submit,
)
from services.executor.core.engines.gangs import EngineGang
from services.executor.core.engines.unrunnable import unsupported
from services.executor.core.slurm.hooks import lost_gangs, with_notes
from services.executor.core.slurm.parse import jobs_of, nodes_of
from services.executor.core.slurm.submission import SlurmOptions, sbatch_arguments
from services.executor.engines.noted_folder import reachable, refuse_writers
from services.executor.engines.slurm.commands import CommandFailed, SlurmCommands, words_of
from services.executor.engines.slurm.folder import GangFolder
from services.executor.engines.slurm.hook_folder import HookFolder
from services.executor.engines.slurm.tidying import Tidying
from services.executor.engines.slurm.users import uids_of, user_name, user_refusal
from shared.contracts.failures import Failure
from shared.contracts.nodes import Backend


class SlurmEngine:
    """`root` is the folder that nodes and executor share; `options_of` takes a tenant.

    `users` are the names of all users of jobs beside that of the executor; `hooks` is the folder of
    the notes of Slurm's scripts, None where they are not installed; `keep_s` is the time after
    which the files of an ended gang are removed, None for never.
    """

    backend: Backend = "slurm"

    def __init__(
        self,
        commands: SlurmCommands,
        root: Path,
        partition: str,
        options_of: Callable[[str], SlurmOptions],
        executor_uid: int,
        users: Iterable[str] = (),
        hooks: Path | None = None,
        keep_s: float | None = None,
    ) -> None:
        self._commands = commands
        self._root = root
        self._partition = partition
        self._options_of = options_of
        self._executor_uid = executor_uid
        self._users = frozenset((user_name(executor_uid), *users))
        uids = uids_of(self._users) | {executor_uid}
        self._hooks = HookFolder(hooks, uids) if hooks is not None else None
        roots = (root,) if hooks is None else (root, hooks)
        self._tidying = Tidying(roots, keep_s) if keep_s is not None else None

    async def run(self, changed: Callable[[], None]) -> None:
        """Listen to the scripts of Slurm, and tidy; without both return."""
        async with asyncio.TaskGroup() as group:
            if self._hooks is not None:
                group.create_task(self._hooks.listen(changed))
            if self._tidying is not None:
                group.create_task(self._tidying.run())

    def refusal(self, gang: EngineGang) -> Failure | None:
        """Refuse an image, and what would run as root; Slurm refuses the rest at submission."""
        if image := gang.launch.image:
            return unsupported(f"image: {image!r}; no images are run there", permanent=True)
        tenant = gang.launch.tenant
        return user_refusal(tenant, self._options_of(tenant).user, self._executor_uid)

    async def observe(self, identities: Collection[str]) -> EngineState:
        """Look at Slurm first: what ended before the look has noted its end by now."""
        nodes, jobs = await asyncio.gather(
            self._commands.read_json("sinfo", "--json"),
            self._commands.read_json("squeue", "--json"),
        )
        if self._tidying is not None:
            self._tidying.note_living(identities)
        with reachable(self._root):
            progress = await asyncio.to_thread(self._progress, identities)
        folders = {str(GangFolder(self._root, name).path): name for name in identities}
        seen, known = nodes_of(nodes, self._partition), jobs_of(jobs, self._users, folders)
        state = EngineState(seen, known, progress)
        if self._hooks is None:
            return state
        return with_notes(state, await asyncio.to_thread(self._hooks.notes, lost_gangs(state)))

    def _progress(self, identities: Collection[str]) -> dict[str, GangProgress]:
        if self._root.exists():
            refuse_writers(self._root, stat.S_IWOTH)
        return {name: GangFolder(self._root, name).progress() for name in identities}

    async def act(self, action: Action) -> Failure | None:
        with reachable(self._root):
            return await self._act(action)

    async def _act(self, action: Action) -> Failure | None:
        match action:
            case Submit(gang=gang):
                return await self._submit(gang)
            case Start(gang=gang, ref=ref):
                folder = GangFolder(self._root, gang.identity)
                await asyncio.to_thread(folder.start, ref, gang.master_port)
            case Forbid(identity=identity):
                await asyncio.to_thread(GangFolder(self._root, identity).forbid)
            case Signal(ref=ref):
                await self._cancel("--signal=TERM", ref)
            case Kill(ref=ref, has_program=True):
                await self._cancel("--signal=KILL", f"{ref}.0")
            case Kill(ref=ref):
                await self._cancel(ref)
        return None

    async def _submit(self, gang: EngineGang) -> Failure | None:
        if failure := self.refusal(gang):
            return failure
        folder = GangFolder(self._root, gang.identity)
        options = self._options_of(gang.launch.tenant)
        commands = str(self._commands.folder or "")
        try:
            await asyncio.to_thread(folder.write_scripts, gang, options.user)
            with TemporaryDirectory(prefix="berth-sbatch-") as private:
                script = folder.write_submission(gang, commands, Path(private))
                arguments = sbatch_arguments(gang, str(folder.path), options, private)
                await self._commands.run("sbatch", *arguments, str(script))
        except KeyError:
            detail = f"{options.user!r}: no such user on the executor's machine"
            return Failure(reason="user_missing", detail=detail)
        except CommandFailed as error:
            return Failure(reason="engine_refused", detail=refusal_words(str(error)))
        return None

    async def _cancel(self, *arguments: str) -> None:
        """Signal or cancel a job or a step; one that has ended meanwhile needs nothing."""
        with suppress(CommandFailed):
            await self._commands.run("scancel", *arguments)

    async def read_output(self, identity: str, rank: int, offset: int) -> bytes:
        return await asyncio.to_thread(GangFolder(self._root, identity).output, rank, offset)


def refusal_words(text: str) -> str:
    return f"Slurm: {words_of(text.splitlines())}"[:1024]
