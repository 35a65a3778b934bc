"""A process that kills itself at the n-th call that changes the file system: a crash at every point of a piece of work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
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
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what the work prints does not mix with the answers
calls, setup = json.loads(sys.stdin.readline())
names = {"start": start}
exec(compile(setup, "setup", "exec"), names)
for line in sys.stdin:
    limit, work, arguments = json.loads(line)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
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
    print(int(made) if code == 0 else -1 if code == -signal.SIGKILL else "failed", file=answers, flush=True)
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


class Forks:
    """Like `run_until_killed`, many times: one process does the imports (`setup`), each work is its forked child."""

    def __init__(self, setup: str) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed by `close`)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _FORKING],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, cwd=Path(__file__).parents[2],
            env={**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
        )  # fmt: skip
        self._say([_CALLS, setup])

    def run(self, work: str, arguments: Sequence[str], at: int = 0) -> int:
        """Run `work`, which calls `start()` and finds its arguments in `sys.argv`; kill it at call `at` (0: never).

        Returns the number of calls that it made, or -1 if it was killed.
        """
        self._say([at, work, list(arguments)])
        assert self._process.stdout is not None
        answer = self._process.stdout.readline().strip()
        if not answer or answer == "failed":
            self._errors.seek(0)
            raise AssertionError(self._errors.read()[-4000:])
        return int(answer)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()
        self._errors.close()

    def _say(self, value: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()


def spread(total: int, kills: int) -> list[int]:
    """So many points between the first and the last of `total` calls, evenly spread."""
    kills = min(kills, total)
    return sorted({1 + round(number * (total - 1) / max(1, kills - 1)) for number in range(kills)})
