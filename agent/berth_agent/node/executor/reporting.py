"""Sends the reports of the outbox: a thread, with one request in flight at a time."""

from __future__ import annotations

import logging
import threading

from berth_agent.messages import REPORTS_PATH, Acknowledged, ReportsRequest
from berth_agent.node.agent import Agent
from berth_agent.node.connection.http import Connection, RequestFailed
from berth_agent.node.executor.session import OpenSession, SessionLoop, guarded

TOO_LARGE = 413
DISK_S = 1.0
"""Wait after an acknowledgement that could not be noted."""

log = logging.getLogger(__name__)


class Reporting:
    """Ends the session where the executor does not take the reports."""

    def __init__(self, agent: Agent, sessions: SessionLoop) -> None:
        self._agent = agent
        self._sessions = sessions

    def start(self) -> None:
        threading.Thread(target=guarded(self._run), daemon=True, name="reports").start()

    def _run(self) -> None:
        stopping = self._sessions.stopping
        while (session := self._sessions.wait_for_session()) is not None:
            connection = self._sessions.connect(session.url)
            try:
                while self._sessions.session is session and not stopping.is_set():
                    self._send_batch(session, connection)
            except RequestFailed as failure:
                self._sessions.note(failure)
                stopping.wait(failure.retry_after_s)
                self._sessions.drop(session, str(failure))
            except OSError as error:
                log.error("reports cannot be noted: %s", error)
                stopping.wait(DISK_S)
            finally:
                connection.close()

    def _send_batch(self, session: OpenSession, connection: Connection) -> None:
        """Send the oldest reports, or wait for one."""
        agent = self._agent
        with agent.lock:
            incarnation = agent.incarnations.incarnation
            first_n, reports = agent.batch()
            if not reports or agent.needs_hello:
                agent.changed.wait(1.0)
                return
        request = ReportsRequest(
            session_id=session.session_id, incarnation=incarnation, first_n=first_n, reports=reports
        )
        limit_s = self._sessions.request_s()
        try:
            answer = connection.post(REPORTS_PATH, request, Acknowledged, limit_s)
        except RequestFailed as failure:
            if failure.status != TOO_LARGE or not agent.shrink_batch(incarnation, len(reports)):
                raise
            return
        if agent.incarnations.incarnation == incarnation:
            agent.acknowledged(answer.n)
