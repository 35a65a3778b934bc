"""Micro-batching: requests that come at the same time share encoder batches; the queue is bounded and has deadlines."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from dmin.server.engine import Engine, Fitted
from dmin.server.problems import Problem, busy
from dmin.server.schemas import AnswerToText
from dmin.threads import compute_alone

Answers = list[AnswerToText]


@dataclass
class Job:
    """Texts of one request, or a part of them."""

    fitted: Fitted
    texts: Sequence[str]
    top_k: int
    explain: bool
    deadline: float  # of time.monotonic
    future: Future[Answers] = field(default_factory=Future)


class Batcher:
    """Threads that answer from one queue.

    Args:
        engine: what answers.
        threads: how many batches are worked on side by side, each on one core.
        batch: texts of one batch, at most.
        most: texts that may wait.
        observe: called with the number of texts of each batch.
    """

    def __init__(
        self,
        engine: Engine,
        threads: int = 1,
        batch: int = 32,
        most: int = 2048,
        observe: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._engine, self._batch, self._most, self._observe = engine, batch, most, observe
        self._jobs: deque[Job] = deque()
        self._waiting = 0  # texts
        self._changed = threading.Condition()
        self._closing = False
        self._threads = [
            threading.Thread(target=self._run, name=f"dmin-batch-{n}", daemon=True) for n in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """Texts that wait."""
        return self._waiting

    def submit(self, fitted: Fitted, texts: Sequence[str], top_k: int, explain: bool, seconds: float) -> list[Job]:
        """Put a request into the queue, in parts that fit a batch; a 503 problem where it has no room."""
        deadline = time.monotonic() + seconds
        # A large request is divided among the threads, a small one stays whole.
        share = -(-len(texts) // len(self._threads)) if len(texts) > self._batch else len(texts)
        size = max(1, min(self._batch, share))
        parts = [texts[at : at + size] for at in range(0, len(texts), size)]
        jobs = [Job(fitted, part, top_k, explain, deadline) for part in parts]
        with self._changed:
            if self._closing:
                raise busy("The service is stopping; ask again in a moment.", "stopping", 5)
            if self._waiting + len(texts) > self._most:
                raise busy("Too many texts are waiting; ask again in a second.", "queue-full")
            self._jobs.extend(jobs)
            self._waiting += len(texts)
            self._changed.notify(len(jobs))
        return jobs

    def close(self) -> None:
        """Take nothing more, and finish what was accepted."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        compute_alone()
        while True:
            jobs = self._take()
            if not jobs and self._finished():
                return
            try:
                self._work(jobs)
            except BaseException as error:  # noqa: BLE001 (whoever waits must hear of it, and the thread goes on)
                for job in jobs:
                    if not job.future.done():
                        job.future.set_exception(error)

    def _take(self) -> list[Job]:
        """The next jobs that fit one batch; none when all were cancelled or too late, or when it is time to stop."""
        with self._changed:
            while not self._jobs and not self._closing:
                self._changed.wait()
            jobs: list[Job] = []
            texts = 0
            # A fair share: a thread that took all would leave the others idle, and all texts waiting for its last one.
            most = min(self._batch, -(-self._waiting // len(self._threads)))
            while self._jobs and (not jobs or texts + len(self._jobs[0].texts) <= most):
                job = self._jobs.popleft()
                self._waiting -= len(job.texts)
                if not job.future.set_running_or_notify_cancel():
                    continue  # the caller went away
                if time.monotonic() > job.deadline:
                    job.future.set_exception(busy("The service was too busy to answer in time.", "deadline"))
                    continue
                jobs.append(job)
                texts += len(job.texts)
        return jobs

    def _finished(self) -> bool:
        with self._changed:
            return self._closing and not self._jobs

    def _work(self, jobs: Sequence[Job]) -> None:
        """Answer jobs: texts of all of them are encoded together, then each collection scores its own."""
        texts = [text for job in jobs for text in job.texts]
        if not texts:
            return  # all of them were cancelled or too late
        self._observe(len(texts))
        groups: dict[int, list[Job]] = {}
        for job in jobs:
            groups.setdefault(id(job.fitted), []).append(job)
        if len(groups) > 1:
            self._engine.vectors(texts)
        for group in groups.values():
            self._answer(group)

    def _answer(self, group: Sequence[Job]) -> None:
        """Answer jobs of one collection at one revision."""
        fitted = group[0].fitted
        try:
            texts = [text for job in group for text in job.texts]
            most = max(job.top_k for job in group)
            found = self._engine.classify(fitted, texts, most)
            at = 0
            for job in group:
                answers = found[at : at + len(job.texts)]
                if job.top_k < most:
                    answers = [answer.model_copy(update={"top": answer.top[: job.top_k]}) for answer in answers]
                at += len(job.texts)
                if job.explain:
                    answers = [
                        answer.model_copy(update={"explanation": self._engine.explain(fitted, text)})
                        for answer, text in zip(answers, job.texts, strict=True)
                    ]
                job.future.set_result(answers)
        except Problem as problem:
            for job in group:
                if not job.future.done():
                    job.future.set_exception(problem)
