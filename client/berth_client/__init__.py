"""The client of Berth's REST API.

from berth_client import Client

with Client() as berth:
    receipt = berth.submit({"name": "train", "command": ["python", "train.py"]}, tenant="ada")
    print(berth.wait(receipt["job_id"])["phase"])
"""

from berth_client.async_client import AsyncClient
from berth_client.bundles import BadFolder
from berth_client.client import Client
from berth_client.errors import BerthError, InvalidField
from berth_client.transport import StreamEvent

__all__ = ["AsyncClient", "BadFolder", "BerthError", "Client", "InvalidField", "StreamEvent"]
