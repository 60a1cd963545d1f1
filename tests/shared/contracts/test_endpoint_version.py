from __future__ import annotations

from shared.contracts.endpoint_version import endpoint_version
from shared.contracts.endpoints import EndpointConfigured, Upstream
from shared.contracts.pools import ABSENT


def test_the_version_changes_with_every_setting_and_with_nothing_else() -> None:
    event = EndpointConfigured(endpoint="m", partition=0)
    assert endpoint_version(event) == endpoint_version(event.model_copy())
    other = event.model_copy(update={"upstreams": (Upstream(name="a", url="http://a"),)})
    assert endpoint_version(event) != endpoint_version(other)
    assert endpoint_version(None) == ABSENT


def test_a_setting_at_its_default_does_not_count() -> None:
    given = EndpointConfigured(endpoint="m", partition=0, queue_limit=200)
    assert endpoint_version(given) == endpoint_version(
        EndpointConfigured(endpoint="m", partition=0)
    )
