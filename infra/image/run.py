"""`python -I -S run.py COMMAND...`: runs it, passes signals on, and ends as it ends; but for 71.

A service that ends so has met a ledger from which it must not go on (`shared/bus/fatal.py`), and
started again it would only say so again. Docker's restart policies know no exit codes: so this
process stays, nobody answers the health check, and a person who has looked restarts the container.
Nothing to import, as it stands beside every service.
"""

import os
import signal
import sys
from contextlib import suppress

EXIT_PROTOCOL = 71
STAYS = "stopped for good, as said above; `docker restart` this container once that is mended"


def main(command: list[str]) -> int:
    """The exit code; that of a shell where a signal ended the command."""
    child = os.posix_spawnp(command[0], command, os.environ, setsid=True)

    def pass_on(number: int, _: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(child, number)

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, pass_on)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == EXIT_PROTOCOL:
        _stay(child)
    return code if code >= 0 else 128 - code


def _stay(child: int) -> None:
    """Until it is told to end; nothing of the command goes on meanwhile."""
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_DFL)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    sys.stderr.write(f"{STAYS}\n")
    sys.stderr.flush()
    while True:
        signal.pause()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
