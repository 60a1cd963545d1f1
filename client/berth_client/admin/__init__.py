"""Requests that set up and look after an installation, for `send` and `pages` of both clients.

from berth_client import Client
from berth_client.admin import objects

with Client() as berth:
    berth.wait_command(berth.send(objects.update_pool("gpu", {"stop_after_s": 60})))

The settings of a body are those of the schema that `/docs` of a gateway shows. A change is decided
after its receipt: `wait_command` waits for that, and raises the refusal.
"""
