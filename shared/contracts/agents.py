"""Messages between an executor and the agent of a node: JSON over HTTPS, the agent is the client.

An agent opens a session by `Hello`, polls `OrdersRequest`, and posts heartbeats, reports, logs and
telemetry. The package of the agent has the same messages as dataclasses, generated from here.
Times named `boot_ms` are milliseconds of CLOCK_BOOTTIME of the node.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from shared.contracts import iterations, measurements
from shared.contracts.base import Model, Name
from shared.contracts.bundles import BUNDLE, MAX_PARTS, Sha256
from shared.contracts.bundles import PART_BYTES as PART_BYTES  # the agent has it too
from shared.contracts.failures import Failure
from shared.contracts.job_spec import BUNDLES_LABEL as BUNDLES_LABEL  # the agent has these too
from shared.contracts.job_spec import HAS_BUNDLES as HAS_BUNDLES
from shared.contracts.job_spec import HAS_IMAGES as HAS_IMAGES
from shared.contracts.job_spec import IMAGES_LABEL as IMAGES_LABEL
from shared.contracts.measurements import GpuReading as GpuReading  # the agent has it too
from shared.contracts.measurements import Measurements

MAX_REPORTS = 500
"""Reports of one request."""
AGENT_API = "/agent/v1"
"""Path of the requests of agents, at executors and at the gateway."""
TERMINAL_PATH = f"{AGENT_API}/terminals"
"""Path of the terminals of agents, `/<id>`: WebSockets; the header `Berth-Session` names the
session."""
ADDRESS_LABEL = "berth.address"
"""Label of a node with the address by which its workers reach each other."""
TMP_LABEL = "berth.tmp"
"""Label of a node: `job` where each job has a /tmp and /dev/shm of its own, else `shared`."""
USER_LABEL = "berth.user"
"""Label of a node: `tenant` where workers run as users of their tenants, else `agent`."""
DISK_LABEL = "berth.disk"
"""Label of a node: what the files of a worker may take, such as `50 GiB`, else `shared`."""
MAX_ORDERS = 500
"""Orders of one answer, confirmations included; the next request gets the rest."""
MAX_CA_CHARS = 65_536
MAX_LINES = 1000
"""Lines of one worker in one request."""
InstallationId = Annotated[str, Field(pattern=r"^[0-9a-f]{0,32}$")]
AllocationId = Annotated[str, Field(min_length=1, max_length=96)]
Uuid = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
StepPhase = Literal["prepared", "starting", "running", "stopping", "dead", "stuck"]
OrderKind = Literal[
    "prepare", "go", "stop", "confirm", "forget", "terms", "fence", "joined", "inject"
]


class Position(Model):
    """A place in the placement ledger of the pool's lane; orders are carried out in its order."""

    seq: int = Field(0, ge=0, lt=2**63, description="sequence number of the record")
    index: int = Field(0, ge=0, lt=2**31, description="index of the event in the record")


class Incarnation(Model):
    """One life of a node: a new one is made at a reboot, after a lapsed lease, or when fenced."""

    generation: int = Field(
        ge=1, lt=2**53, description="higher than that of every earlier incarnation"
    )
    uuid: Uuid = Field(description="distinguishes machines that were made from one image")


class Terms(Model):
    """Settings of the lease that a node works under."""

    terms_id: str = Field(max_length=64, description="changes whenever a value changes")
    stop_after_s: float | None = Field(
        None,
        description="s after the sending of the last acknowledged heartbeat at which every worker "
        "of the node is killed; absent: workers are kept whatever happens",
    )
    heartbeat_s: float = Field(gt=0, description="s between heartbeats")
    request_timeout_s: float = Field(gt=0, description="s until a request counts as lost")
    reconnect_s: float = Field(gt=0, description="longest s between two attempts to connect")


class StepState(Model):
    """A worker that the agent holds, from the folder of its allocation."""

    allocation_id: AllocationId = Field(description="`partition/seq/index/rank`")
    phase: StepPhase = Field(description="phase of the worker")
    exit_code: int | None = Field(None, description="exit code of a dead worker that ran")


class Hello(Model):
    """Opens a session; the answer says whether the agent goes on or begins a new incarnation."""

    node_id: Name = Field(description="the node")
    version: str = Field(max_length=64, description="version of the agent")
    incarnation: Incarnation = Field(description="present incarnation")
    boot_id: str = Field(max_length=64, description="id of the machine's boot")
    pid_namespace: str = Field(max_length=64, description="id of the agent's pid namespace")
    hardware: str = Field(max_length=64, description="hash of the machine's identity, or empty")
    former_hardware: tuple[str, ...] = Field(
        (), max_length=8, description="hashes by which earlier versions named the same machine"
    )
    applied: Position = Field(description="position of the last order that was carried out")
    writer: str = Field(
        "", max_length=64, description="writer of the record of `applied`, as `Orders` named it"
    )
    lapsed: bool = Field(description="the lease of this incarnation has lapsed")
    terms_id: str = Field("", max_length=64, description="terms that the node works under")
    steps: tuple[StepState, ...] = Field((), max_length=4096, description="workers it holds")
    reports_from: int = Field(ge=1, description="number of its first unacknowledged report")
    injects: bool = Field(False, description="whether the agent knows orders of kind `inject`")
    keeps_secrets: bool = Field(
        False, description="whether the agent takes values of secrets apart, and never to a disk"
    )
    terminals: bool = Field(False, description="whether the agent opens terminals in workers")
    bundles: bool = Field(False, description="whether workers start with the files of a bundle")
    process: str = Field(
        "",
        pattern=r"^[0-9a-f]{0,32}$",
        description="random id of the agent's process, by which copies of one disk differ; absent: "
        "of an agent of an earlier release",
    )
    network_namespace: str = Field(
        "",
        max_length=64,
        description="id of the agent's network namespace, in which it is alone with its identity; "
        "absent: of an agent of an earlier release",
    )


class TerminalRequest(Model):
    """A terminal that a user opened in a worker; the agent connects to the executor for it."""

    terminal_id: Uuid = Field(description="names the terminal when the agent connects")
    allocation_id: AllocationId = Field(description="the worker")
    command: tuple[str, ...] = Field((), max_length=256, description="argv; empty: a login shell")
    tty: bool = Field(description="whether the program has a terminal; else it has pipes")
    term: str = Field("", max_length=64, description="variable TERM, empty without a terminal")
    rows: int = Field(24, ge=1, le=65535, description="rows of the terminal")
    columns: int = Field(80, ge=1, le=65535, description="columns of the terminal")


class Welcome(Model):
    """The answer to `Hello`."""

    session_id: Uuid = Field(description="names the session in every later request")
    last_generation: int = Field(ge=0, description="highest generation of the node so far")
    terms: Terms = Field(description="present terms of the pool")
    action: Literal["continue", "register", "fence", "behind"] = Field(
        description="`continue`: the incarnation is joined; `register`: report a registration; "
        "`fence`: kill all workers and begin a new incarnation; `behind`: try another executor"
    )
    executors: tuple[Annotated[str, Field(max_length=300)], ...] = Field(
        (), max_length=64, description="base URLs of the executors of nodes; none: as before"
    )
    installation: InstallationId = Field("", description="its id; empty: none is known")


class Heartbeat(Model):
    """Extends the lease once it is acknowledged; the answer has no body."""

    session_id: Uuid = Field(description="the session")
    incarnation: Incarnation = Field(description="the incarnation whose lease is extended")
    sent_boot_ms: int = Field(ge=0, lt=2**63, description="read before the request is sent")
    terms_id: str = Field("", max_length=64, description="terms that the node works under")
    disk_problem: str = Field(
        "", max_length=512, description="why the disk takes no new work; empty: it does"
    )
    gpu_fault: str | None = Field(
        None,
        max_length=512,
        description="GPUs that need a reset or service, and why; empty: none; absent: not known",
    )
    gpu_slow: str | None = Field(
        None,
        max_length=512,
        description="GPUs that heat or power has slowed down for minutes; empty: none; absent: "
        "not known",
    )
    faulty_gpus: tuple[measurements.GpuNumber, ...] = Field(
        (), max_length=measurements.MAX_GPUS, description="GPUs that `gpu_fault` is about"
    )
    slow_gpus: tuple[measurements.GpuNumber, ...] = Field(
        (), max_length=measurements.MAX_GPUS, description="GPUs that `gpu_slow` is about"
    )
    inventory_problem: str | None = Field(
        None,
        max_length=512,
        description="how the GPUs differ from what the node declares; empty: not at all; absent: "
        "not known",
    )


class Launch(Model):
    """Everything that a node needs to run one worker."""

    job_id: str = Field(max_length=96, description="job of the worker")
    first_job_id: str = Field(
        "", max_length=96, description="its id in its first pool; empty: it was not transferred"
    )
    tenant: str = Field(max_length=63, description="tenant that owns the job")
    tenant_number: int | None = Field(
        None, ge=0, lt=2**31, description="its number in the installation; absent: unknown"
    )
    user: str = Field(
        "", max_length=63, description="user that the job belongs to; empty: of an earlier executor"
    )
    attempt: int = Field(ge=1, description="number of the attempt")
    array_index: int | None = Field(None, description="index within an array of jobs")
    rank: int = Field(ge=0, description="rank of the worker in its gang")
    world_size: int = Field(ge=1, description="workers of the gang")
    local_rank: int = Field(ge=0, description="rank among the gang's workers of this node")
    local_world_size: int = Field(ge=1, description="workers of the gang on this node")
    node_rank: int = Field(ge=0, description="rank of this node among the gang's nodes")
    nodes: int = Field(ge=1, description="nodes of the gang")
    gpus: tuple[int, ...] = Field((), max_length=64, description="indices of its GPUs")
    gpu_milli: int = Field(ge=0, le=1000, description="thousandths of each GPU")
    cpus: float = Field(ge=0, description="CPU cores")
    mem_gib: float = Field(ge=0, description="memory, GiB")
    command: tuple[str, ...] = Field((), max_length=256, description="argv")
    image: str = Field("", max_length=256, description="container image; empty: none")
    workdir: str = Field("", max_length=4096, description="directory; empty: one of its own")
    bundle: str = Field(
        "", pattern=BUNDLE, description="files that its directory begins with; empty: none"
    )
    env: dict[str, str] = Field(
        default_factory=dict, description="variables; that of a secret is its name, secret://name"
    )
    secrets: dict[str, str] = Field(
        default_factory=dict, description="values of variables that name a secret; kept in memory"
    )
    master_addr: str = Field("", max_length=256, description="address of the worker of rank 0")
    grace_s: float = Field(ge=0, description="s between SIGTERM and SIGKILL at a stop")
    walltime_s: float | None = Field(None, description="wall s after which it is stopped")
    starts_alone: bool = Field(
        False,
        description="it waits for no others: it starts once its `ready` is acknowledged, and `go` "
        "changes nothing then",
    )
    failure: Failure | None = Field(
        None, description="present: it cannot run, and the agent reports it refused with this"
    )


class Injection(Model):
    """A fault for all workers of a node, for a drill."""

    fault: Literal["none", "slow", "stop", "flap"] = Field(
        description="`none`: the one before is over; `flap`: slow and well, in turn"
    )
    factor: float = Field(1.0, ge=1, le=100, description="multiple of time")
    left_s: float = Field(0.0, ge=0, le=3600, description="s until it ends by itself")


class Order(Model):
    """One order to a node.

    `terms`, `fence`, `joined` and `inject` concern the node, others one worker.
    """

    kind: OrderKind = Field(description="the action")
    position: Position = Field(description="its place in the ledger")
    incarnation: Uuid = Field(description="incarnation that it is meant for")
    allocation_id: str = Field("", max_length=96, description="the worker, empty for the node")
    launch: Launch | None = Field(None, description="of `prepare`: how to run it")
    master_port: int | None = Field(
        None, ge=1, le=65535, description="of `go`: port of the worker of rank 0"
    )
    grace_s: float | None = Field(None, ge=0, description="of `stop`: absent: as launched")
    terms: Terms | None = Field(None, description="of `terms`: the new ones")
    injection: Injection | None = Field(None, description="of `inject`: the fault")


class OrdersRequest(Model):
    """A long poll: answered when there are orders after `after`, at the latest after `wait_s`."""

    session_id: Uuid = Field(description="the session")
    after: Position = Field(description="position of the last order that the agent has noted")
    wait_s: float = Field(20.0, ge=0, le=60, description="longest s without an answer")


class Orders(Model):
    """Orders by position; without any, the agent polls again."""

    orders: tuple[Order, ...] = Field((), max_length=MAX_ORDERS, description="oldest first")
    through: Position = Field(description="no order at or below it follows")
    terminals: tuple[TerminalRequest, ...] = Field(
        (), max_length=64, description="terminals to open; sent once, and in no ledger"
    )
    writer: str = Field(
        "",
        max_length=64,
        description="process that wrote the record of `through`: after a restore from a backup "
        "another one writes that record; `?` if it is not known any more",
    )


class RegistrationReport(Model):
    """The node registers under its incarnation: nothing of an older one lives."""

    kind: Literal["registration"] = "registration"
    incarnation: Incarnation = Field(description="present incarnation")
    boot_id: str = Field(max_length=64, description="id of the machine's boot")
    pid_namespace: str = Field(max_length=64, description="id of the agent's pid namespace")
    hardware: str = Field(max_length=64, description="hash of the machine's identity, or empty")
    gpu_type: Name = Field(description="GPU type")
    gpus: int = Field(ge=0, le=64, description="GPUs, in devices")
    unusable_gpus: tuple[Annotated[int, Field(ge=0, lt=64)], ...] = Field(
        (), max_length=64, description="GPUs not to be used"
    )
    cpus: float = Field(ge=0, le=4096, description="CPU cores")
    mem_gib: float = Field(ge=0, le=65536, description="memory, GiB")
    rack: str = Field("", max_length=64, description="rack")
    labels: dict[str, Annotated[str, Field(max_length=256)]] = Field(
        default_factory=dict, max_length=32, description="labels that node selectors match"
    )
    terms_id: str = Field("", max_length=64, description="terms that the node works under")
    fencing: Literal["kernel", "advice"] = Field(
        "kernel", description="`advice`: workers have no pid namespace, a sweep ends what they fork"
    )
    limits: str = Field("", max_length=64, description="cgroup version that enforces limits")


class ReadyReport(Model):
    """A worker is prepared and waits for `go`."""

    kind: Literal["ready"] = "ready"
    allocation_id: AllocationId = Field(description="the worker")
    master_port: int | None = Field(None, ge=1, le=65535, description="free port, of rank 0")


class RefusedReport(Model):
    """A worker cannot be prepared on this node; nothing of it lives."""

    kind: Literal["refused"] = "refused"
    allocation_id: AllocationId = Field(description="the worker")
    failure: Failure = Field(description="reason")


class ExitedReport(Model):
    """A worker ended by itself, or by its limits; nothing of it lives."""

    kind: Literal["exited"] = "exited"
    allocation_id: AllocationId = Field(description="the worker")
    exit_code: int = Field(ge=-(2**31), lt=2**31, description="128 + signal if a signal ended it")
    ran_ms: int = Field(0, ge=0, lt=2**53, description="ms from start to end")
    failure: Failure | None = Field(None, description="reason, unless it exited with 0")


class StoppedReport(Model):
    """A worker is stopped as ordered; also reported of an unknown worker."""

    kind: Literal["stopped"] = "stopped"
    allocation_id: AllocationId = Field(description="the worker")
    exit_code: int | None = Field(None, ge=-(2**31), lt=2**31, description="absent: it never ran")


class StuckReport(Model):
    """A worker does not die although it was killed; its GPUs stay taken."""

    kind: Literal["stuck"] = "stuck"
    allocation_id: AllocationId = Field(description="the worker")
    detail: str = Field("", max_length=1024, description="processes that still live")


class TermsAppliedReport(Model):
    """No deadline of older terms lies ahead any more."""

    kind: Literal["terms_applied"] = "terms_applied"
    terms_id: str = Field(max_length=64, description="present terms")
    sent_boot_ms: int = Field(ge=0, lt=2**63, description="read before the report was made")


class LeavingReport(Model):
    """The node is taken out of service on purpose; nothing of a worker lives."""

    kind: Literal["leaving"] = "leaving"


NodeReport = Annotated[
    RegistrationReport
    | ReadyReport
    | RefusedReport
    | ExitedReport
    | StoppedReport
    | StuckReport
    | TermsAppliedReport
    | LeavingReport,
    Field(discriminator="kind"),
]


class ReportsRequest(Model):
    """Reports by number, oldest first; numbers of one incarnation are dense from 1."""

    session_id: Uuid = Field(description="the session")
    incarnation: Incarnation = Field(description="the incarnation that reports")
    first_n: int = Field(ge=1, description="number of the first report")
    reports: tuple[NodeReport, ...] = Field(max_length=MAX_REPORTS, description="oldest first")


class Acknowledged(Model):
    """The answer to reports: those up to `n` are durable."""

    n: int = Field(ge=0, description="number of the last durable report")


class PrintedLines(Model):
    """Lines of a worker's output."""

    allocation_id: AllocationId = Field(description="the worker")
    first_line: int = Field(ge=0, description="number of the first line")
    lines: tuple[str, ...] = Field(max_length=MAX_LINES, description="oldest first")
    is_last: bool = Field(False, description="the worker has ended, and no line follows")
    open_line: str = Field("", description="state of the next line, which has no end yet")


class Iterations(iterations.IterationColumns):
    """Iterations of one process of a worker, as its reporter sent them."""

    allocation_id: AllocationId = Field(description="the worker")
    rank: int = Field(ge=0, description="rank of the worker in its gang")


class Checkpoint(Model):
    """A checkpoint that a worker's program reported."""

    allocation_id: AllocationId = Field(description="the worker")
    ran_ms: int = Field(
        ge=0, lt=2**53, description="ms from the worker's start to its report, by the node"
    )
    step: int = Field(0, ge=0, lt=2**53, description="its step, as the job named it")


class Progress(Model):
    """The progress of a worker's program, as it reported it, and its speed by the node's clock."""

    allocation_id: AllocationId = Field(description="the worker")
    ran_ms: int = Field(
        ge=0, lt=2**53, description="ms from the worker's start to its report, by the node"
    )
    step: int = Field(ge=0, lt=2**53, description="iterations that are done")
    steps_total: int = Field(ge=1, lt=2**53, description="iterations of the whole training")
    iteration_s: float = Field(
        ge=0, le=1e9, description="mean wall s of an iteration, with what lies between them"
    )


class Stream(Model):
    """Output, telemetry, checkpoints and progress: lost or repeated ones do no harm."""

    session_id: Uuid = Field(description="the session")
    printed: tuple[PrintedLines, ...] = Field((), max_length=256, description="output")
    iterations: tuple[Iterations, ...] = Field((), max_length=1024, description="telemetry")
    checkpoints: tuple[Checkpoint, ...] = Field(
        (), max_length=1024, description="the last checkpoint of each worker that reported one"
    )
    progress: tuple[Progress, ...] = Field(
        (), max_length=1024, description="the progress of each worker that reported a total"
    )
    measured: Measurements | None = Field(None, description="the node itself, now and then")


class RequestProblem(Model):
    """The body of every refusal."""

    reason: str = Field(max_length=64, description="machine-readable: snake_case")
    detail: str = Field("", max_length=1024, description="the fault: value; the rule")


class JoinRequest(Model):
    """A new node presents a join token and the hash of the credential that it made itself."""

    node_id: Name = Field(description="the node")
    token: str = Field(min_length=1, max_length=512, description="join token, shown once; private")
    credential_sha256: str = Field(
        pattern=r"^[0-9a-f]{64}$", description="sha256 of the node's secret; private"
    )
    hardware: str = Field("", max_length=64, description="hash of the machine's identity, or empty")


class RenewRequest(Model):
    """A node replaces its credential, with the present one in the header `Authorization`.

    The present one stays valid for a while: a node that gets no answer repeats the request.
    """

    credential_sha256: str = Field(
        pattern=r"^[0-9a-f]{64}$", description="sha256 of the node's new secret; private"
    )
    hardware: str = Field("", max_length=64, description="hash of the machine's identity, or empty")
    former_hardware: tuple[Annotated[str, Field(max_length=64)], ...] = Field(
        (), max_length=8, description="hashes by which earlier versions named the same machine"
    )


class Joined(Model):
    """The answer to a join or a renewal: the node has an identity, perhaps still to be approved."""

    node_id: Name = Field(description="the node")
    pool: Name = Field(description="pool of the token")
    approved: bool = Field(description="false: an operator has to run `berth nodes approve`")
    executors: tuple[str, ...] = Field(description="base URLs of the pool's executors")
    expires_at: int = Field(description="ms, when the credential expires unless renewed")
    installation: InstallationId = Field("", description="its id; empty: none is known")
    ca: str = Field(
        "",
        max_length=MAX_CA_CHARS,
        description="PEM of the CA of the servers' certificates; empty: none is named",
    )


class BundleRequest(Model):
    """A request for the manifest of the bundle of a worker of this node."""

    session_id: Uuid = Field(description="the session")
    allocation_id: AllocationId = Field(description="the worker")


class BundleManifest(Model):
    """The manifest of a bundle."""

    parts: tuple[Sha256, ...] = Field(
        max_length=MAX_PARTS, description="SHA-256 of each part, in order"
    )
    size_bytes: int = Field(ge=0, description="bytes of all parts together")


class BundlePartRequest(Model):
    """A request for one part of the bundle of a worker of this node."""

    session_id: Uuid = Field(description="the session")
    allocation_id: AllocationId = Field(description="the worker")
    index: int = Field(ge=0, lt=MAX_PARTS, description="index of the part in the manifest")


class BundlePart(Model):
    """One part of a bundle."""

    base64: str = Field(max_length=2 * PART_BYTES, description="its bytes")


EXECUTOR_REQUESTS: dict[str, tuple[type[Model], type[Model] | None]] = {
    "hello": (Hello, Welcome),
    "heartbeat": (Heartbeat, None),
    "orders": (OrdersRequest, Orders),
    "reports": (ReportsRequest, Acknowledged),
    "stream": (Stream, None),
    "bundle": (BundleRequest, BundleManifest),
    "part": (BundlePartRequest, BundlePart),
}
"""`POST /agent/v1/<name>` of an executor: request and answer; `Authorization: Bearer <credential>`.

Refusals carry a `RequestProblem`: 400 malformed, 401 unknown or expired credential, 403 revoked or
another node's allocation, 404 unknown path or `bundle_missing`, 408 a body that did not come in
time, 409 unknown session (send `Hello` again), 413 too large, 429 too many requests
(`Retry-After`), 503 behind or not ready (try the next executor).
"""

GATEWAY_REQUESTS: dict[str, tuple[type[Model], type[Model]]] = {
    "join": (JoinRequest, Joined),
    "renew": (RenewRequest, Joined),
}
"""`POST /agent/v1/<name>` of the gateway. `join` needs no key; `renew` takes the credential.

Refusals: 401 wrong token or credential, 403 expired or used-up token, revoked credential, 409 the
node exists or its machine has changed, 422 malformed, 429 too many attempts (`Retry-After`), 503.
"""
