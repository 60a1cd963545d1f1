"""A version stands for the settings of an endpoint, however an event spells them."""

from __future__ import annotations

import json

from shared.contracts.endpoint_version import endpoint_version
from shared.contracts.endpoints import ConfigureEndpoint, EndpointConfigured, Upstream

CHAT = EndpointConfigured(
    endpoint="chat", partition=1, upstreams=(Upstream(name="a", url="http://a:1"),)
)


def test_equal_settings_have_one_version_and_others_another() -> None:
    spelled = json.loads(CHAT.model_dump_json())
    sparse = json.loads(CHAT.model_dump_json(exclude_defaults=True))
    assert spelled != sparse
    same = {endpoint_version(EndpointConfigured.model_validate(row)) for row in (spelled, sparse)}
    assert same == {endpoint_version(CHAT)}
    assert endpoint_version(CHAT.model_copy(update={"slack": 5.0})) != endpoint_version(CHAT)


def test_every_version_may_be_named_by_a_change() -> None:
    for endpoint in (None, CHAT):
        version = endpoint_version(endpoint)
        assert ConfigureEndpoint(endpoint="chat", if_version=version).if_version == version
    assert endpoint_version(None) == "absent"
