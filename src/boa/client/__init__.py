"""The service from Python: `Client` speaks its REST API.

with Client() as boa:
    job = boa.submit({"class": "resnet18", "run": "python train.py"})
    print(boa.wait(job["id"])["state"])
"""

from boa.client.api import Client
from boa.client.wire import DEFAULT_URL
from boa.errors import NoServer, Refused

__all__ = ["DEFAULT_URL", "Client", "NoServer", "Refused"]
