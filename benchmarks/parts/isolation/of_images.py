"""Cases of images that a job names; each returns what leaked, or nothing."""

from __future__ import annotations

from benchmarks.parts.isolation import images
from benchmarks.parts.isolation.two_tenants import TwoTenants
from berth_agent.linux import disk

LEFT_GIB = 0.2
"""Of a pull that ended; other programs write meanwhile."""


def image_that_does_not_exist(tenants: TwoTenants) -> str:
    """It ends with its reason; a registry that does not answer is tried a few times."""
    row = tenants.ended(tenants.submit(tenants.red, "exit 0", image="localhost:9/no/such-image:1"))
    reason = f"{tenants.failure(row)} {row['detail']}"
    is_named = row["phase"] in ("failed", "rejected") and "image" in reason
    return "" if is_named else f"it ended as {row['phase']}: {reason}"


def image_without_a_shell(tenants: TwoTenants) -> str:
    if not tenants.runs_images():
        return refused_image(tenants)
    with images.without_a_shell() as image:
        row = tenants.ended(tenants.submit(tenants.red, "exit 0", image=image))
    reason = tenants.failure(row)
    is_named = reason == "command_missing"
    return "" if is_named else f"it ended as {row['phase']}: {row['failure']}"


def image_that_is_huge(tenants: TwoTenants) -> str:
    """Its pull ends, and leaves nothing of it on the disk of the node."""
    if not tenants.runs_images():
        return refused_image(tenants)
    before_gib = disk.free_gib("/var")
    with images.huge() as image:
        row = tenants.ended(tenants.submit(tenants.red, "exit 0", image=image))
    reason = tenants.failure(row)
    if reason != "image_too_large":
        return f"it ended as {row['phase']}: {reason} {row['detail']}"
    left_gib = before_gib - disk.free_gib("/var")
    return "" if left_gib < LEFT_GIB else f"{left_gib:.1f} GiB less are free"


def refused_image(tenants: TwoTenants) -> str:
    """A node without an engine gets no job with an image."""
    row = tenants.ended(tenants.submit(tenants.red, "exit 0", image="localhost/none:1"))
    return "" if row["phase"] == "rejected" else f"it ended as {row['phase']}"


CASES = (image_that_does_not_exist, image_without_a_shell, image_that_is_huge)
