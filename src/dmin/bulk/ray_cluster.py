"""Run a class as actors of Ray Data without log lines and usage reports, with progress row by row."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dmin.errors import ConfigError, DminError

_MOST_TASKS = 10_000  # tasks that Ray keeps track of; beyond that a task gets several items
_PERIOD = 0.5  # seconds between looks at the counter
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent anywhere
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else a warning on every start
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
}


def run(
    worker: type,
    arguments: Sequence[Any],
    items: Sequence[Mapping[str, Any]],
    *,
    workers: int | None = None,
    device: str | None = None,
    after_batch: Callable[[int], object] = int,
) -> Iterator[dict[str, Any]]:
    """Yield the results of the workers, in the order in which they are done.

    Args:
        worker: a class; `worker(*arguments, device, counter)` is made once in each actor, and called with columns of items.
        arguments: sent to each actor.
        items: one task each.
        workers: actors; without it, one per core of the cluster (per GPU on "cuda"). Never more than items.
        device: "cpu", "cuda"; without one, "cuda" where the cluster has GPUs.
        after_batch: called with the number of rows counted since the last call.

    Raises:
        DminError: when Ray, or a worker outside of its own error handling, failed; one line.
    """
    ray = import_ray()
    with _cluster(ray):
        resources = ray.cluster_resources()
        device = device or ("cuda" if resources.get("GPU") else "cpu")
        kind = "gpu" if device.startswith("cuda") else "cpu"
        there = int(resources.get(kind.upper(), 0))
        if not there:
            raise ConfigError(f"--device {device}: the Ray cluster has no {kind.upper()}")
        counter = _counter(ray)
        data = ray.data.from_items(list(items), override_num_blocks=min(len(items), _MOST_TASKS)).map_batches(
            worker,
            batch_size=1,
            # One task in flight: a file must not wait behind another while a worker is idle.
            compute=ray.data.ActorPoolStrategy(size=min(workers or there, len(items)), max_tasks_in_flight_per_actor=1),
            fn_constructor_args=(*arguments, device, counter.add.remote),
            **{f"num_{kind}s": 1},
        )
        try:
            with _watched(ray, counter, after_batch):
                yield from data.iter_rows()
        except DminError:
            raise
        except Exception as error:  # Ray has many kinds
            raise DminError(f"Ray gave up: {_last_line(error)}") from error


class Counter:
    """Counts rows for all workers."""

    def __init__(self) -> None:
        self.rows = 0

    def add(self, rows: int) -> None:
        """Count so many more."""
        self.rows += rows

    def total(self) -> int:
        """All so far."""
        return self.rows


def _counter(ray: Any) -> Any:
    """A counter on this machine, so that it survives the loss of another one."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    beside = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return ray.remote(num_cpus=0, scheduling_strategy=beside)(Counter).remote()


def import_ray() -> Any:
    """Import Ray with log lines off; it reads these settings while it is imported."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ConfigError('--engine ray needs an extra: pip install "dmin[ray]"') from error
    return ray


@contextmanager
def _cluster(ray: Any) -> Iterator[None]:
    """The cluster this process is in already, else the one it finds, else a new one, which is shut down afterwards."""
    own = not ray.is_initialized()
    if own:
        try:
            with _muted():
                ray.init(include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ConfigError(f"cannot reach or start Ray: {_last_line(error)}") from error
    settings = ray.data.DataContext.get_current()
    before = settings.enable_progress_bars, settings.print_on_execution_start
    settings.enable_progress_bars = settings.print_on_execution_start = False
    log = logging.getLogger("ray.data")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)
        settings.enable_progress_bars, settings.print_on_execution_start = before
        if own:
            ray.shutdown()


@contextmanager
def _muted() -> Iterator[None]:
    """Suppress what Ray's C++ part writes to standard error while it starts; its errors come as exceptions."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 (no path)
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def _watched(ray: Any, counter: Any, after_batch: Callable[[int], object]) -> Iterator[None]:
    """Report the rows counted since the last report, twice a second and at the end."""
    end = threading.Event()
    reported = 0

    def look() -> None:
        nonlocal reported
        try:
            total = ray.get(counter.total.remote())
        except ray.exceptions.RayError:  # the progress bar must not stop a run
            return
        after_batch(total - reported)
        reported = total

    def watch() -> None:
        while not end.wait(_PERIOD):
            look()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        end.set()
        watcher.join()
    look()


def _last_line(error: BaseException) -> str:
    """The last line of a traceback that came as a text: the error without its place."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
