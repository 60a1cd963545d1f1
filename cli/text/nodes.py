"""Text of nodes: the row of each, and its state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from cli.text.times import DAY_MS, age_ms, clock, field_text, span

COLUMNS = ("NODE", "POOL", "TYPE", "GPUS", "USED", "STATE", "SILENT", "LOST AFTER", "JOINED")
GONE_MS = 7 * DAY_MS
MACHINE_CHANGED = "machine_changed: "
"""Begins the reason of a node whose name another machine has registered for."""

MEANINGS = {
    ("limits", "none"): "CPU, memory and number of processes of its workers are not limited",
    ("fencing", "advice"): "the agent, not the kernel, ends what outlives a killed step",
    ("tmp", "shared"): "its workers see /tmp and /dev/shm of the node, and what others leave there",
    ("images", "no"): "jobs with an image run on other nodes",
    ("disk", "shared"): "a job may fill its disk; on a full one, that with the most files ends",
    ("user", "agent"): "workers of all tenants run as the user of its agent",
}
"""Values of fields by which the workers of a node are protected less, and how."""

REMEDIES = {
    "cloned_identity": "another agent has a copy of its state folder and is refused. Stop the copy,"
    " or let it join as a node of its own: `berth nodes token --pool {pool}`, then there"
    " `berth-agent join URL --again --node-id NAME` and a restart of its agent",
    "disk_full": "it takes no new jobs until there is space again, running ones go on. Free space"
    " on that disk: ended jobs of the node take at most keep_ended_gib of its agent",
    "gpu_fault": "it takes no new jobs, and jobs with room elsewhere have left. Reset the GPU or"
    " restart the machine, then restart its agent; `berth uncordon {node}` uses it as it is",
    "gpu_slow": "it takes no new jobs until it is well for some minutes: look at its cooling and"
    " power supply; `berth uncordon {node}` uses it as it is",
    "engine_drained": "the site's engine starts nothing new there, so Berth does not either: resume"
    " it there, as by `scontrol update nodename={node} state=resume`",
    "foreign_work": "GPUs that Berth counts as free are held by work of others: it takes"
    " no new jobs until that ends, or until no job of Berth is there and it joins anew",
    "inventory_differs": "it takes no new jobs until the settings of its agent (gpus, gpu_type,"
    " unusable_gpus) say what it has; `berth uncordon {node}` uses it as it is",
}
"""Remedies of the problems of a node."""
STATES = {
    "disk_full": "disk full",
    "engine_drained": "drained by the engine",
    "foreign_work": "occupied by others",
}
"""Words for the problems during which a node takes no new jobs."""
REJOINS = "its agent ends all of its workers, joins anew and takes work again, within seconds"
TAKE_OUT = "berth drain {node}`, `berth-agent leave` there, `berth nodes revoke {node}"
"""Commands that take a living node out of service."""

HISTORY = "history/"
"""Begins the id of what the earlier faults of a node or GPU count for."""

LABELS = {"tmp": "berth.tmp", "user": "berth.user", "images": "berth.images", "disk": "berth.disk"}
"""Fields of a node that its agent names by labels; an earlier one names none."""

Row = Mapping[str, object]
"""A row of a node, as the API returns it."""


def node_row(node: Row) -> tuple[object, ...]:
    used = sum(cast("list[int]", node["used_milli"])) / 1000
    return (
        node["node_id"],
        node["pool"],
        node["gpu_type"],
        node["gpus"],
        used,
        state_of(node),
        seconds(node["silent_ms"]) if node["silent_ms"] else "",
        seconds(node["lost_after_ms"]),
        clock(node["joined_at"]),
    )


def node_text(name: str, value: object) -> str:
    """Return a field of a node as text, with its meaning where it means less protection."""
    text = field_text(name, value)
    meaning = MEANINGS.get((name, text))
    return f"{text}: {meaning}" if meaning else text


def problem_lines(node: Row) -> list[str]:
    """Return each problem of a node in words: since when, figures, and what to do."""
    lines = []
    for problem in cast("list[Row]", node.get("problems") or []):
        name = str(problem["problem"])
        remedy = REMEDIES.get(name, "").format(pool=node.get("pool"), node=node.get("node_id"))
        since = f"since {clock(problem['since_at'])}"
        words = "; ".join(filter(None, [str(problem["detail"]), remedy]))
        lines.append(f"{name}, {since}: {words}")
    return lines


def health_lines(node: Row) -> list[tuple[str, str]]:
    """Return the health of a node as a whole and of each GPU that is suspected, with reasons."""
    reasons: dict[int | None, list[Row]] = {}
    for suspicion in cast("list[Row]", node.get("suspicions") or []):
        reasons.setdefault(cast("int | None", suspicion["gpu"]), []).append(suspicion)
    lines = []
    for gpu in sorted(reasons, key=lambda number: -1 if number is None else number):
        worst = max(cast("float", own["slowdown"]) for own in reasons[gpu])
        part = "node health" if gpu is None else f"GPU {gpu} health"
        words = "; ".join(map(suspicion_text, reasons[gpu]))
        lines.append((part, f"{1 / worst:.2f}: {words}"))
    return lines


def suspicion_text(suspicion: Row) -> str:
    """Return one reason in words: the job whose worker was slow, or earlier faults.

    For a tenant there is no id of the job.
    """
    fault_id, since = str(suspicion["fault_id"]), clock(suspicion["since_at"])
    until = suspicion["until"]
    end = "" if until is None else f", counts until {clock(until)}"
    times = f"{cast('float', suspicion['slowdown']):.2f} times as slow"
    if fault_id.startswith(HISTORY):
        return f"its faults since {since} count as {times}{end}"
    if not fault_id:
        return f"{times} since {since}{end}"
    return f"{times} in {fault_id} since {since}{end} (berth why-slow {fault_id.split('/')[0]})"


def loss_text(node: Row, *, powered_off: bool) -> str:
    """Return what follows from giving up a node that was in this state."""
    if powered_off:
        return "its jobs stop, its GPUs are free"
    if not is_silent(node):
        take_out = TAKE_OUT.format(node=node["node_id"])
        return f"its jobs stop. It is alive: {REJOINS}. To take it out instead: `{take_out}`"
    return f"its jobs stop. It is silent for {span(node['silent_ms'])}: {release_text(node)}"


def loss_words(data: Row) -> str:
    """Return the event of a loss in one line."""
    off = ", powered off" if data.get("powered_off") else ""
    alive = f", alive: {REJOINS}" if data.get("heard") else ""
    reason = f"{data.get('reason') or '-'}{off}{alive}"
    return "; ".join(filter(None, [reason, str(data.get("detail") or "")]))


def release_text(node: Row) -> str:
    """Return what frees the GPUs of a node that is declared lost."""
    bound_ms = node["lost_after_ms"]
    silence = "" if bound_ms is None else f", or after {span(bound_ms)} without a heartbeat"
    rejoins = REJOINS.removeprefix("its agent ")
    return (
        f"if its agent lives, it {rejoins}. Else its GPUs are held until it has rebooted{silence};"
        f" `berth nodes lost {node['node_id']} --powered-off` frees them if the machine is off"
    )


def loss_lines(node: Row) -> list[str]:
    """Return what will become of a node that is declared lost; nothing for another one."""
    return [release_text(node)] if node.get("state") == "declared" else []


def labelled_fields(node: Row) -> dict[str, object]:
    """Return the fields of a node that its labels name."""
    labels = cast("Row", node.get("labels") or {})
    return {name: labels[label] for name, label in LABELS.items() if label in labels}


def backend_text(backend: object) -> str:
    """Return how nodes run jobs; what virtual ones do is no result of a machine."""
    return "virtual (simulated GPUs)" if backend == "virtual" else str(backend)


def seconds(milliseconds: object) -> str:
    """Return a time that a node may be silent; no limit where its workers are kept."""
    return "never" if milliseconds is None else f"{int(cast('int', milliseconds)) // 1000} s"


def silence_text(node: Row) -> str:
    """Return how long a silent node is silent, and after which silence it counts as lost."""
    bound_ms = node["lost_after_ms"]
    bound = "its silence alone never loses it"
    if bound_ms is not None:
        bound = f"it counts as lost after {span(bound_ms)} without a heartbeat"
    return f"silent for {span(node['silent_ms'])}; {bound}"


def worker_loss(terms: Row) -> str:
    """Return why a job was stopped that lost a worker; empty for another stop."""
    if terms.get("lease_over"):
        return "the lease of its node was over, or was ended, and its workers with it"
    died = "its node lost a worker: the process that held it died"
    return died if terms.get("workers_lost") else ""


def silence_of(terms: Row) -> str:
    """Return how long the node was silent whose loss stopped a job; empty for another stop."""
    silent_s, bound_s = terms.get("silent_s"), terms.get("lost_after_s")
    if not isinstance(silent_s, (int, float)):
        return ""
    allowed = f" ({bound_s:.0f} s are allowed)" if isinstance(bound_s, (int, float)) else ""
    return f" after {silent_s:.0f} s without a heartbeat{allowed}"


def state_of(node: Row) -> str:
    """Return the state in words, worst first; executors refuse a node that was revoked."""
    if str(node["reason"]).startswith(MACHINE_CHANGED):
        return f"{'held back' if node['alive'] else 'lost'} (another machine waits)"
    if not node["alive"]:
        # Behind the loss comes why the node was cordoned, which `berth nodes show` prints.
        loss = str(node["reason"]).partition("; ")[0]
        return "declared lost" if node["state"] == "declared" else f"lost ({loss})"
    if node.get("identity") in ("revoked", "expired", "pending"):
        return f"{node['identity']}, suspected" if is_silent(node) else str(node["identity"])
    if is_silent(node):
        return "suspected"
    if node["draining"]:
        return "draining" if any(cast("list[int]", node["used_milli"])) else "drained"
    health = cast("float", node["health"])
    slow = f", health {health:.2f}" if health < 1 else ""
    injection = cast("Row | None", node.get("injection"))
    drill = f", {injection['fault']} injected" if injection else ""
    copied = ", identity cloned" if "cloned_identity" in problems_of(node) else ""
    ready = next((STATES[name] for name in problems_of(node) if name in STATES), "ready")
    return ("cordoned" if node["cordoned"] else ready) + copied + slow + drill


def is_gone(node: Row) -> bool:
    """Return whether a node is lost, holds no GPU, and was revoked or lost a week ago."""
    if node["alive"] or node["state"] != "lost" or any(cast("list[int]", node["used_milli"])):
        return False
    lost_ms = age_ms(cast("int", node["lost_at"]), node.get("as_of"))
    return node.get("identity") == "revoked" or lost_ms > GONE_MS


def has_full_disk(node: Row) -> bool:
    return "disk_full" in problems_of(node)


def problems_of(node: Row) -> list[str]:
    """Return the names of the problems of a node; a gateway of an earlier release has none."""
    return [str(row["problem"]) for row in cast("list[Row]", node.get("problems") or [])]


def is_silent(node: Row) -> bool:
    return node["state"] == "suspected"
