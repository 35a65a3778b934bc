"""Files and folders that are whole or not there, and known by their digests."""

from dmin.files.atomic import file_digest, sync, write_atomic
from dmin.files.documents import check_document, read_document, read_json, write_json
from dmin.files.folder import new_folder, reading_folder
from dmin.files.manifest import MANIFEST, check_manifest, write_manifest
from dmin.files.paths import home_cache, user_path
from dmin.files.tensors import read_tensors, write_tensors

__all__ = [
    "MANIFEST",
    "check_document",
    "check_manifest",
    "file_digest",
    "home_cache",
    "new_folder",
    "read_document",
    "read_json",
    "read_tensors",
    "reading_folder",
    "sync",
    "user_path",
    "write_atomic",
    "write_json",
    "write_manifest",
    "write_tensors",
]
