"""A process that kills itself at the n-th call that changes the file system: a crash at every point of a piece of work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

# Everything through which Python and our own code change names and contents on disk.
_CALLS = (
    "rename",
    "replace",
    "mkdir",
    "rmdir",
    "unlink",
    "open",
    "fsync",
    "write",
    "link",
    "symlink",
    "chmod",
    "utime",
)

_PROGRAM = """
import json, os, signal, sys

limit, calls, setup = json.loads(sys.argv[1])
count = 0

def counted(call):
    def wrapped(*args, **kwargs):
        global count
        count += 1
        if count == limit:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **kwargs)
    return wrapped

def start():
    for name in calls:
        setattr(os, name, counted(getattr(os, name)))
    import dmin.files.folder as folders
    folders._exchange = counted(folders._exchange)

sys.argv = sys.argv[2:]
exec(compile(setup, "work", "exec"), {"start": start})
print(count)
"""


def run_until_killed(work: str, arguments: Sequence[str], at: int, environment: dict[str, str] | None = None) -> int:
    """Run Python code that calls `start()` where the crash may begin; kill it at call `at` (0: never).

    Returns the number of calls that it made, or -1 if it was killed.
    """
    content = json.dumps([at, _CALLS, work])
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, content, "work", *arguments],
        capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})},
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    if done.returncode == -signal.SIGKILL:
        return -1
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])
