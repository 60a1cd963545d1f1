"""`python -I -S run.py COMMAND...`: run a command, forward signals, exit with its code; but for 71.

Exit code 71 means a ledger that must not be appended to (`shared/bus/fatal.py`); a restart would
fail again. Docker's restart policies ignore exit codes, so this process stays, the health check
fails, and an operator restarts the container. It imports little, since one runs beside every
service.
"""

import os
import signal
import sys
from contextlib import suppress

EXIT_PROTOCOL = 71
STOPPED = "stopped: see the error above; fix it, then `docker restart` this container"


def main(command: list[str]) -> int:
    """Run the command; return its exit code, 128 + n if signal n ended it."""
    child = os.posix_spawnp(command[0], command, os.environ, setsid=True)

    def pass_on(number: int, _: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(child, number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == EXIT_PROTOCOL:
        _stay(child)
    return code if code >= 0 else 128 - code


def _stay(child: int) -> None:
    """Kill what is left of the command and wait for a signal."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    sys.stderr.write(f"{STOPPED}\n")
    sys.stderr.flush()
    while True:
        signal.pause()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
