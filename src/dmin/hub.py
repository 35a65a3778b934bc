"""The Hugging Face hub: whether it can be reached, fetching folders and uploading them."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from urllib.parse import urlparse

from dmin.errors import ModelError, one_line

_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,95}"  # of an id, as the hub allows it
_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


def hub_reachable(timeout: float = 5.0) -> bool:
    """True if a connection to the hub can be opened, or if there is a proxy, where only a request can tell."""
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


def is_hub_id(name: str | Path) -> bool:
    """True for a name of the form `owner/name` that cannot be meant as a path of this machine."""
    return re.fullmatch(rf"{_PART}/{_PART}", str(name)) is not None


def may_be_encoder_id(name: str) -> bool:
    """True for the form of an encoder's id: `owner/name`, or one of the old names without an owner."""
    return re.fullmatch(rf"{_PART}(/{_PART})?", name) is not None


def fetch_folder(identifier: str, marker: str = "head.json") -> Path:
    """Fetch a repository of the hub as a local folder; without a network, from the cache if `marker` is there."""
    from huggingface_hub import snapshot_download, try_to_load_from_cache

    reachable = hub_reachable()
    if not reachable and not isinstance(try_to_load_from_cache(identifier, marker), str):
        raise ModelError(
            f"no folder {identifier!r}, and the Hugging Face hub cannot be reached from here: give a folder"
        )
    try:
        return Path(snapshot_download(identifier, local_files_only=not reachable))
    except Exception as error:
        raise ModelError(
            f"cannot fetch {identifier!r} from the hub: {type(error).__name__}: {one_line(error, 200)}"
        ) from error


def send_folder(folder: Path, identifier: str, *, private: bool = False) -> str:
    """Upload a folder as a model repository of the hub; return its address."""
    from huggingface_hub import HfApi

    if not hub_reachable():
        raise ModelError(f"the Hugging Face hub cannot be reached from here: {identifier!r} was not sent")
    try:
        api = HfApi()
        address = api.create_repo(identifier, private=private, exist_ok=True)
        api.upload_folder(folder_path=folder, repo_id=identifier, commit_message="Model by dmin")
    except Exception as error:
        raise ModelError(
            f"cannot send {identifier!r} to the hub: {type(error).__name__}: {one_line(error, 200)}"
        ) from error
    return str(address)
