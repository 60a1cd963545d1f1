"""Names of the files in the agent's folders; other versions read them, so a name never changes.

First those of the state folder, then those of the run folder and of an allocation's folder.
"""

from __future__ import annotations

LOCK = "lock"
"""Held by the agent of a state folder, and by the step or agent that changes an allocation."""

IDENTITY = "identity.json"
JOINING = "joining.json"
"""The secret of a join that has no answer yet."""

INCARNATION = "incarnation.json"
UIDS = "uids.json"
OUTBOX = "outbox"
RESERVE = "reserve"
LEAVE = "leave"
ALLOCATIONS = "allocations"
ENDED = "ended"
WORK = "work"
"""Private directories of workers; in an allocation the file that names its own."""

SCRATCH = ".scratch"
"""Below the private directories: folders that the workers of a job share on this node."""

IMAGES = "images.json"
"""When each image that the agent has pulled was last used."""
PULLS = "pulls"
"""Blobs that pulls of images have fetched, until they end."""

LEASE = "lease.json"
GPUS = "gpus.json"
"""Errors and slowdowns of GPUs that agents of this boot have seen."""
INSTANCES = "instances.json"
"""MIG instances that the present incarnation has registered, by number."""
INJECTION = "injection.json"
STATUS = "status.json"
STREAMED = "streamed.json"
WAKE = "wake"
TELEMETRY = "telemetry"
SECRETS = "secrets"
"""Values of secrets until their step has them, where the run folder is in memory."""


ORDER = "order.json"
SPEC = "spec.json"
GO = "go.json"
STOP = "stop.json"
STATE = "state.json"
TOMBSTONE = "tombstone"
REPORTED = "reported"
ALIVE = "alive"
TERMS = "terms"
SCRATCH_NAME = "scratch"
"""Names the folder that the worker shares with others of its job."""
TERMINALS = "terminals"
"""Folder of a folder for each terminal that is open; in it the five names below."""

REQUEST = "request.json"
LIFE_FIFO, STATUS_FIFO = "life", "status"
STEP_LOG = "step.log"
