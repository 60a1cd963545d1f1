"""The supervisor process: supervisord with forked starts, handling of an in-memory broker, and of
services that end again and again."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from supervisor import events
from supervisor.medusa import asyncore_25
from supervisor.options import decode_wait_status
from supervisor.process import Subprocess
from supervisor.states import ProcessStates, SupervisorStates
from supervisor.supervisord import Supervisor

from infra.supervisor.warm import Warm, WarmOptions

LOOK_EVERY_S = 0.2
EXIT_ERROR = 70
"""Exit code of a service that an error ended (`shared/bus/fatal.py`)."""
STEADY_S = 60.0
"""A service that ran so long has started well: its next error is the first one again."""
MOST_PAUSE_S = 30.0
"""Longest pause before a service that ends with errors is started again."""
STOPPED = "stopped"
BROKER_ENDED = "the embedded broker ended and its data is lost: the stack stops; start it again"


class StackProcess(Subprocess):  # type: ignore[misc]
    """A process that pauses longer from one error to the next; its state is `backoff` meanwhile.

    It starts at once after a kill and after the first error. supervisord itself does not pause for
    a process that has lived for a second, and starts one again that has not, whatever its code.
    """

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._errors = 0

    def finish(self, pid: int, sts: int) -> None:
        code, _ = decode_wait_status(sts)
        lived_s = time.time() - self.laststart
        if code in self.config.exitcodes and lived_s < self.config.startsecs:
            self.laststart -= self.config.startsecs  # else it would only end again, for ever
        super().finish(pid, sts)
        if lived_s >= STEADY_S:
            self._errors = 0
        if code == EXIT_ERROR and self.state == ProcessStates.EXITED:
            self._errors += 1
            if self._errors > 1:
                self._pause(min(self._errors - 1.0, MOST_PAUSE_S))

    def _pause(self, pause_s: float) -> None:
        self.change_state(ProcessStates.BACKOFF)
        self.delay = time.time() + pause_s
        self.config.options.logger.warn(
            f"{self.config.name} has ended with an error {self._errors} times, each within"
            f" {STEADY_S:.0f} s: it starts again in {pause_s:.0f} s; its log has the reason"
        )


def make_process(config: Any, group: Any = None) -> StackProcess:
    """Return the process of this configuration, as `ProcessConfig.make_process` does."""
    process = StackProcess(config)
    process.group = group
    return process


class StackSupervisor(Supervisor):  # type: ignore[misc]
    """Stops the stack when a process dies whose in-memory data the others depend on."""

    def __init__(self, options: WarmOptions, volatile_program: str) -> None:
        super().__init__(options)
        self._volatile_program = volatile_program
        poll = options.poller.poll
        # Its own loop looks once a second, which a killed service would have to wait for.
        options.poller.poll = lambda timeout: poll(min(timeout, LOOK_EVERY_S))

    def runforever(self) -> None:
        # Which of the two it is depends on whether the process lived for a second.
        events.subscribe(events.ProcessStateExitedEvent, self._on_exit)
        events.subscribe(events.ProcessStateBackoffEvent, self._on_exit)
        super().runforever()

    def tick(self, now: float | None = None) -> None:
        # At the end of its loop's first round: the parts start while the services' code is read.
        if self.options.warm is None:
            groups = self.options.process_group_configs
            commands = [process.command for group in groups for process in group.process_configs]
            self.options.warm = Warm(commands)
            self.options.warm.read()
        super().tick(now)

    def _on_exit(self, event: events.ProcessStateEvent) -> None:
        running = self.options.mood == SupervisorStates.RUNNING
        if running and event.process.config.name == self._volatile_program:
            self.options.mood = SupervisorStates.SHUTDOWN
            (Path(self.options.logfile).parent.parent / STOPPED).write_text(BROKER_ENDED + "\n")
            sys.stderr.write(f"berth: {BROKER_ENDED}\n")


def main(config: str, volatile_program: str) -> None:
    """Run the supervisor in this process until it is stopped."""
    options = WarmOptions()
    options.realize(["-c", config, "-n"], doc=__doc__)
    options.first, options.test = True, False
    for group in options.process_group_configs:
        for process in group.process_configs:
            process.make_process = partial(make_process, process)
    with suppress(asyncore_25.ExitNow):
        StackSupervisor(options, volatile_program).main()
    options.close_httpservers()
    options.close_logger()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "")
