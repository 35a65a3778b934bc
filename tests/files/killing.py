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
    "truncate",
    "ftruncate",
)

_COUNTING = """
import builtins, io, json, os, signal, sys, traceback

count = limit = 0

def counted(call, counts=lambda *args, **kwargs: True):
    def wrapped(*args, **kwargs):
        global count
        if counts(*args, **kwargs):
            count += 1
            if count == limit:
                os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **kwargs)
    return wrapped

def writes(path, mode="r", *rest, **named):
    return mode.strip("bt") != "r"

def start():
    for name in calls:
        setattr(os, name, counted(getattr(os, name)))
    io.open = builtins.open = counted(io.open, writes)
    import dmin.files.folder as folders
    folders._exchange = counted(folders._exchange)
"""

_PROGRAM = (
    _COUNTING
    + """
limit, calls, setup = json.loads(sys.argv[1])
sys.argv = sys.argv[2:]
exec(compile(setup, "work", "exec"), {"start": start})
print(count)
"""
)

_FORKING = (
    _COUNTING
    + """
calls, setup, work, cases = json.load(sys.stdin)
names = {"start": start}
exec(compile(setup, "setup", "exec"), names)
found = []
for limit, arguments in cases:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(2, 1)
        sys.argv = ["work", *arguments]
        try:
            exec(compile(work, "work", "exec"), names)
            os.write(writing, str(count).encode())
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    made = os.read(reading, 100)
    os.close(reading)
    code = os.waitstatus_to_exitcode(status)
    found.append(int(made) if code == 0 else -1 if code == -signal.SIGKILL else None)
print(json.dumps(found))
"""
)


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


def run_many(setup: str, work: str, cases: Sequence[tuple[int, Sequence[str]]]) -> list[int]:
    """Like `run_until_killed`, for many (call to be killed at, arguments): `setup`, the imports, is done once.

    Each case is a forked child of one process. `work` calls `start()` and finds its arguments in `sys.argv`.
    """
    content = json.dumps([_CALLS, setup, work, [[at, list(arguments)] for at, arguments in cases]])
    done = subprocess.run(
        [sys.executable, "-c", _FORKING],
        input=content, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2],
        env={**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: list[int] = json.loads(done.stdout.splitlines()[-1])
    assert None not in found, done.stderr
    return found


def spread(total: int, kills: int) -> list[int]:
    """So many points between the first and the last of `total` calls, evenly spread."""
    kills = min(kills, total)
    return sorted({1 + round(number * (total - 1) / max(1, kills - 1)) for number in range(kills)})
