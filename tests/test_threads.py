"""The number of threads is lent, not taken."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
import torch
from threadpoolctl import OpenBLASController, threadpool_limits

from dmin import FewShotClassifier
from dmin.adaptive.head import Head
from dmin.encoder.text_encoder import usable_threads
from dmin.threads import _blas_libraries, compute_alone, one_blas_thread, one_thread


def test_threads_come_back() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
        with one_thread(wanted=False):
            assert torch.get_num_threads() == 2
        with pytest.raises(RuntimeError, match="inside"), one_thread():
            raise RuntimeError("inside")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_threads_do_not_take_the_number_from_each_other() -> None:
    """Blocks in many threads at once, some of which ask torch for the first time inside another's block."""
    before = torch.get_num_threads()
    seen: list[int] = []

    def work() -> None:
        for _ in range(50):
            with one_thread():
                torch.ones(4).sum()
                assert torch.get_num_threads() == 1
        seen.append(torch.get_num_threads())

    try:
        torch.set_num_threads(3)
        for _ in range(5):
            workers = [threading.Thread(target=work) for _ in range(8)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        assert seen == [3] * 40 and torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


@pytest.fixture
def two_blas_threads() -> Iterator[None]:
    """Two threads, whatever the machine has; owned by no thread, as before the first block."""
    limits = threadpool_limits(2, user_api="blas")
    OpenBLASController.clear_controlling_thread(force=True)
    yield
    limits.restore_original_limits()
    OpenBLASController.clear_controlling_thread(force=True)


def blas_threads() -> int:
    """Of the libraries that numpy's products run on; others may be loaded later."""
    return int(max(library["num_threads"] for library in _blas_libraries().info()))


@pytest.mark.usefixtures("two_blas_threads")
def test_threads_of_products_come_back() -> None:
    assert blas_threads() == 2
    with one_blas_thread(wanted=False):
        assert blas_threads() == 2
    with one_blas_thread():
        assert blas_threads() == 1
        with one_blas_thread():
            assert blas_threads() == 1
        assert blas_threads() == 1
    assert blas_threads() == 2
    with pytest.raises(RuntimeError, match="inside"), one_blas_thread():
        raise RuntimeError("inside")
    assert blas_threads() == 2


@pytest.mark.usefixtures("two_blas_threads")
def test_blocks_that_overlap_never_leave_the_process_with_fewer_threads() -> None:
    barrier = threading.Barrier(4)

    def work() -> None:
        barrier.wait(20)
        for _ in range(300):
            with one_blas_thread():
                pass

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert blas_threads() == 2


@pytest.mark.usefixtures("two_blas_threads")
def test_a_classifier_scores_few_texts_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that shared a small product spin afterwards, on cores that the encoder needs."""
    seen: list[int] = []
    usual = Head.cosines

    def watched(self: Head, *arguments: object, **named: object) -> object:
        seen.append(blas_threads())
        return usual(self, *arguments, **named)  # type: ignore[arg-type]

    classifier = FewShotClassifier().fit({"fruit": ["apple", "pear"], "car": ["wheel", "brake"]})
    monkeypatch.setattr(Head, "cosines", watched)
    classifier.predict(["plum", "tyre"])
    assert seen and set(seen) == {1} and blas_threads() == 2


PROGRAM = """
import time
from dmin import FewShotClassifier
classifier = FewShotClassifier(device="cpu").fit({"refund": ["my money back"], "parcel": ["where is my order"]})
def cost():
    start = time.process_time()
    classifier.predict(["has my parcel been sent"])
    time.sleep(0.05)  # threads that wait for work spin on
    return time.process_time() - start
for _ in range(3):
    cost()
default = sorted(cost() for _ in range(9))[4]
import torch
torch.set_num_threads(1)
alone = sorted(cost() for _ in range(9))[4]
print(default / alone)
"""


@pytest.mark.slow
def test_one_text_costs_no_more_than_on_one_thread() -> None:
    """In a process with default settings; idle threads that spin made it ten times as much."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_", "MKL_"))}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=clean, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 2.0


def test_a_thread_that_computes_alone_starts_no_threads_for_an_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    found: list[int] = []

    def work() -> None:
        found.append(usable_threads())
        compute_alone()
        found.append(usable_threads())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [3, 1] and usable_threads() == 3  # only that thread
