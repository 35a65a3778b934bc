"""A typed client of the service: `Client` and `AsyncClient` (extra `serve`).

with Client("http://127.0.0.1:8765") as client:
    client.classify(["where is my parcel?"]).answers[0].label  # 'parcel'
"""

from dmin.client.calls import ServiceError
from dmin.client.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client", "ServiceError"]
