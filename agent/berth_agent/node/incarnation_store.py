"""The present incarnation and its lease, and the files that hold them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from uuid import uuid4

from berth_agent import file_names
from berth_agent.core import incarnation as rules
from berth_agent.core.gpu_health import GpuHealth
from berth_agent.core.incarnation import BootIncarnation, Machine
from berth_agent.core.lease import Lease, restore
from berth_agent.linux import files
from berth_agent.messages import Heartbeat, Incarnation, Injection, Terms
from berth_agent.node.config import Config

log = logging.getLogger(__name__)

UNKNOWN_TERMS = Terms(
    terms_id="", stop_after_s=0.0, heartbeat_s=5.0, request_timeout_s=10.0, reconnect_s=10.0
)
"""Until the first answer: a lease under them is over at once."""


class IncarnationStore:
    """Used under the agent's lock. Methods that write raise OSError."""

    def __init__(
        self,
        config: Config,
        machine: Machine,
        installation: Callable[[], str],
        gpu_health: GpuHealth | None = None,
    ) -> None:
        """Take up what the files hold; a new incarnation has the mark that `installation` returns
        then.
        """
        self.process = uuid4().hex
        """Distinguishes this process from that of a copy of its disk on another machine."""
        self.machine = machine
        self.gpu_health = gpu_health or GpuHealth()
        """Conditions of the GPUs, which its heartbeats carry."""
        self._installation = installation
        self.terms = UNKNOWN_TERMS
        self.last_generation = 0
        self._state_path = f"{config.state}/{file_names.INCARNATION}"
        self._lease_path = f"{config.run}/{file_names.LEASE}"
        self._injection_path = f"{config.run}/{file_names.INJECTION}"
        self._present, self.lease = self._take_up()

    @property
    def incarnation(self) -> Incarnation:
        return self._present.incarnation

    @property
    def uuid(self) -> str:
        return self._present.incarnation.uuid

    @property
    def installation(self) -> str:
        """Mark of the installation that the present incarnation registers with."""
        return self._present.installation

    @property
    def proof(self) -> str:
        return self._present.proof

    @property
    def may_register(self) -> bool:
        return rules.may_register(self._present, self.last_generation)

    def note_generation(self, last: int) -> None:
        """Note the highest generation of the node that an executor knows."""
        self.last_generation = max(self.last_generation, last)

    def begin_next(self) -> None:
        """Begin a new incarnation: it is on disk before it is sent."""
        self._present = rules.next_incarnation(
            self._present, self.last_generation, uuid4().hex, self.machine, self._installation()
        )
        files.write_json(self._state_path, self._present.to_json())
        self.lease = Lease(self.uuid, self.terms)

    def use_terms(self, terms: Terms) -> None:
        """Work under these terms from the next acknowledged heartbeat on."""
        self.terms = terms
        self.lease.change_terms(terms)
        self.write_lease()

    def begin_lease(self, now_ms: int, named_terms: str) -> None:
        """Count the lease from now, as the registration is about to be sent for the first time."""
        if not self.lease.begun:
            self.lease.begin(now_ms, named_terms)
            self.write_lease()

    def end_lease(self) -> None:
        self.lease.end()
        self.write_lease()

    def join(self) -> None:
        if not self.lease.joined:
            log.info("the node is active: generation %d", self.incarnation.generation)
        self.lease.join()
        self.write_lease()

    def heartbeat(self, session_id: str, now_ms: int, disk_problem: str = "") -> Heartbeat | None:
        """Return the next heartbeat, None while there is no lease to extend."""
        if not self.lease.may_send_heartbeat(now_ms):
            return None
        gpus = self.gpu_health.conditions
        return Heartbeat(
            session_id=session_id,
            incarnation=self.incarnation,
            sent_boot_ms=now_ms,
            terms_id=self.lease.terms.terms_id,
            disk_problem=disk_problem[:512],
            gpu_fault=gpus.fault,
            gpu_slow=gpus.slow,
            faulty_gpus=gpus.faulty,
            slow_gpus=gpus.slowed,
            inventory_problem=gpus.differs,
        )

    def acknowledge(self, heartbeat: Heartbeat, now_ms: int) -> None:
        """Extend the lease by the agent's own note of the time of sending."""
        if heartbeat.incarnation != self.incarnation:
            return
        if self.lease.acknowledge(heartbeat.sent_boot_ms, now_ms):
            self.write_lease()

    def inject(self, injection: Injection, now_ms: int) -> None:
        """Let the steps read the fault of a drill, which ends by itself."""
        until_ms = now_ms + round(injection.left_s * 1000)
        values = {
            "incarnation": self.uuid,
            "fault": injection.fault,
            "factor": injection.factor,
            "from_boot_ms": now_ms,
            "until_boot_ms": until_ms,
        }
        files.write_atomic(self._injection_path, json.dumps(values).encode())

    def write_lease(self) -> None:
        """Let the steps read the lease; before it begins there is none."""
        if self.lease.begun:
            files.write_atomic(self._lease_path, json.dumps(self.lease.to_json()).encode())

    def _take_up(self) -> tuple[BootIncarnation, Lease]:
        """Go on with the incarnation of this boot if its lease is still there."""
        document = files.read_json(self._state_path)
        held = rules.read_incarnation(document) if isinstance(document, dict) else None
        if held is not None and rules.goes_on(held, self.machine):
            lease = self._read_lease(held.incarnation.uuid)
            if lease is not None:
                self.terms = lease.terms
                return held, lease
        held = rules.next_incarnation(held, 0, uuid4().hex, self.machine, self._installation())
        files.write_json(self._state_path, held.to_json())
        return held, Lease(held.incarnation.uuid, self.terms)

    def _read_lease(self, uuid: str) -> Lease | None:
        """Return the lease; a damaged one is as good as none: it has lapsed."""
        try:
            return restore(files.read_json(self._lease_path), uuid)
        except (ValueError, TypeError, KeyError):
            return None
