"""The supervisor process: supervisord with forked starts and handling of an in-memory broker."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

from supervisor import events
from supervisor.medusa import asyncore_25
from supervisor.states import SupervisorStates
from supervisor.supervisord import Supervisor

from infra.supervisor.warm import Warm, WarmOptions

LOOK_EVERY_S = 0.2
STOPPED = "stopped"
BROKER_ENDED = "the embedded broker ended and its data is lost: the stack stops; start it again"


class StackSupervisor(Supervisor):  # type: ignore[misc]
    """Stops the stack when a process dies whose in-memory data the others depend on."""

    def __init__(self, options: WarmOptions, forgetful: str) -> None:
        super().__init__(options)
        self._forgetful = forgetful
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
        if running and event.process.config.name == self._forgetful:
            self.options.mood = SupervisorStates.SHUTDOWN
            (Path(self.options.logfile).parent.parent / STOPPED).write_text(BROKER_ENDED + "\n")
            sys.stderr.write(f"berth: {BROKER_ENDED}\n")


def main(config: str, forgetful: str) -> None:
    """Run the supervisor in this process until it is stopped."""
    options = WarmOptions()
    options.realize(["-c", config, "-n"], doc=__doc__)
    options.first, options.test = True, False
    with suppress(asyncore_25.ExitNow):
        StackSupervisor(options, forgetful).main()
    options.close_httpservers()
    options.close_logger()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "")
