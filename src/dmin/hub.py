"""Is the Hugging Face hub there? Asked once, quickly, instead of waiting through a client's many retries."""

from __future__ import annotations

import os
import socket
from urllib.parse import urlparse

_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


def hub_reachable(timeout: float = 5.0) -> bool:
    """True when a connection to the hub can be opened, or when a proxy stands between and only a request can tell."""
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
        return False
    if any(os.environ.get(name) for name in _PROXIES):
        return True
    address = urlparse(os.environ.get("HF_ENDPOINT") or "https://huggingface.co")
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        socket.create_connection((address.hostname or "", port), timeout=timeout).close()
    except OSError:
        return False
    return True
