"""Files and folders that are whole or not there, and known by their digests."""

from dmin.files.arrays import read_arrays, write_arrays
from dmin.files.atomic import file_digest, sync, write_atomic
from dmin.files.cells import safe_cell
from dmin.files.documents import check_document, parse_json, read_document, read_json, short, write_json
from dmin.files.folder import check_replaceable, folder_lock, new_folder, reading_folder, whole_folder
from dmin.files.manifest import MANIFEST, check_manifest, listed_files, write_manifest
from dmin.files.names import safe_name
from dmin.files.paths import home_cache, user_path
from dmin.files.tensors import check_finite, read_tensors, tensor_digest, write_tensors

__all__ = [
    "MANIFEST",
    "check_document",
    "check_finite",
    "check_manifest",
    "check_replaceable",
    "file_digest",
    "folder_lock",
    "home_cache",
    "listed_files",
    "new_folder",
    "parse_json",
    "read_arrays",
    "read_document",
    "read_json",
    "read_tensors",
    "reading_folder",
    "safe_cell",
    "safe_name",
    "short",
    "sync",
    "tensor_digest",
    "user_path",
    "whole_folder",
    "write_arrays",
    "write_atomic",
    "write_json",
    "write_manifest",
    "write_tensors",
]
