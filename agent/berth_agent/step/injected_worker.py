"""The injected fault of a node, as it concerns one worker."""

from __future__ import annotations

from berth_agent.step.injection import PERIOD_MS, SLOW_PERIOD_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from berth_agent.step.injection import InjectedFault
    from berth_agent.step.output import OutputLog
    from berth_agent.step.spec import Spec
    from berth_agent.step.watch import FolderWatch

NEVER_MS = 1_000_000


class InjectedWorker:
    """The fault that holds for a worker, noted in its output; none for a worker that has to end."""

    def __init__(
        self, spec: Spec, output: OutputLog, watch: FolderWatch, ending: Callable[[], bool]
    ) -> None:
        self._incarnation = spec.incarnation
        self._period_ms = PERIOD_MS if spec.pid_namespace else SLOW_PERIOD_MS
        self._output = output
        self._watch = watch
        self._ending = ending
        self._noted: InjectedFault | None = None

    def stops_at(self, now_ms: int) -> bool:
        """Return whether the worker stands still, and note a begin or an end in its output."""
        fault = self._fault(now_ms)
        if fault is not self._noted:
            self._noted = fault
            self._output.note(words_of(fault, now_ms))
        return fault is not None and fault.stops_at(now_ms, self._period_ms)

    def next_ms(self, now_ms: int) -> int:
        """Return the ms until something changes."""
        fault = self._fault(now_ms)
        return NEVER_MS if fault is None else fault.next_ms(now_ms, self._period_ms)

    def _fault(self, now_ms: int) -> InjectedFault | None:
        fault = self._watch.injected
        if fault is None or fault.is_over(now_ms) or self._ending():
            return None
        return fault if fault.incarnation == self._incarnation else None


def words_of(fault: InjectedFault | None, now_ms: int) -> str:
    if fault is None:
        return "the injected fault is over"
    factor = "" if fault.fault == "stop" else f" {fault.factor:g}x"
    left_s = (fault.until_ms - now_ms) / 1000
    return f"an operator injects a fault for a drill: {fault.fault}{factor} for {left_s:.0f} s"
