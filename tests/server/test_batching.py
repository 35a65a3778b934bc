"""The queue by itself: shared batches, bounds, deadlines, a clean stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from dmin.server.batching import Batcher
from dmin.server.engine import Fitted
from dmin.server.problems import Problem
from dmin.server.schemas import AnswerToText, Ranked


class SlowEngine:
    """Answers with the text as the label, and notes what it was asked together."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.encoded: list[list[str]] = []
        self.gate = threading.Event()

    def vectors(self, texts: Sequence[str]) -> None:
        self.encoded.append(list(texts))

    def classify(self, fitted: Fitted, texts: Sequence[str], top_k: int) -> list[AnswerToText]:
        self.gate.wait(10)
        self.asked.append(list(texts))
        if "broken" in texts:
            raise RuntimeError("broken")
        top = [Ranked(label=f"{fitted.name} {rank}", probability=0.5, cosine=0.5) for rank in range(top_k)]
        return [AnswerToText(label=text, probability=0.5, cosine=0.5, refused=False, top=top) for text in texts]


ONE = Fitted("one", 1, object())
TWO = Fitted("two", 1, object())


def make(**options: Any) -> tuple[SlowEngine, Batcher]:
    engine = SlowEngine()
    return engine, Batcher(engine, **options)  # type: ignore[arg-type]


def test_what_waits_is_answered_together_and_in_order() -> None:
    engine, batcher = make(threads=1, batch=8)
    first = batcher.submit(ONE, ["zero"], 1, False, 10)  # keeps the thread busy while the others come
    time.sleep(0.05)
    jobs = [batcher.submit(ONE, [f"{number}a", f"{number}b"], 1 + number % 3, False, 10) for number in range(4)]
    engine.gate.set()
    for number, (job,) in enumerate(jobs):
        answers = job.future.result(10)
        assert [answer.label for answer in answers] == [f"{number}a", f"{number}b"]
        assert len(answers[0].top) == 1 + number % 3
    assert first[0].future.result(10)[0].label == "zero"
    assert engine.asked == [["zero"], [f"{number}{letter}" for number in range(4) for letter in "ab"]]
    batcher.close()


def test_collections_share_the_encoder_and_not_the_answers() -> None:
    engine, batcher = make(threads=1, batch=8)
    batcher.submit(ONE, ["zero"], 1, False, 10)
    time.sleep(0.05)
    (one,), (two,) = batcher.submit(ONE, ["a"], 1, False, 10), batcher.submit(TWO, ["b"], 1, False, 10)
    engine.gate.set()
    assert one.future.result(10)[0].top[0].label == "one 0"
    assert two.future.result(10)[0].top[0].label == "two 0"
    assert engine.encoded == [["a", "b"]]
    batcher.close()


def test_a_large_request_is_divided_and_put_together() -> None:
    engine, batcher = make(threads=2, batch=4)
    engine.gate.set()
    texts = [str(number) for number in range(11)]
    jobs = batcher.submit(ONE, texts, 1, False, 10)
    assert [answer.label for job in jobs for answer in job.future.result(10)] == texts
    assert max(map(len, engine.asked)) <= 4
    batcher.close()


def test_no_room_is_a_503_and_room_comes_back() -> None:
    engine, batcher = make(threads=1, batch=2, most=3)
    batcher.submit(ONE, ["busy"], 1, False, 10)
    time.sleep(0.05)
    batcher.submit(ONE, ["a", "b"], 1, False, 10)
    with pytest.raises(Problem) as caught:
        batcher.submit(ONE, ["c", "d"], 1, False, 10)
    assert (caught.value.status, caught.value.headers["Retry-After"]) == (503, "1")
    engine.gate.set()
    time.sleep(0.1)
    assert batcher.waiting == 0
    assert batcher.submit(ONE, ["c", "d"], 1, False, 10)[0].future.result(10)
    batcher.close()


def test_who_waited_too_long_or_went_away_is_not_computed() -> None:
    engine, batcher = make(threads=1, batch=8)
    batcher.submit(ONE, ["busy"], 1, False, 10)
    time.sleep(0.05)
    (late,) = batcher.submit(ONE, ["late"], 1, False, 0.01)
    (gone,) = batcher.submit(ONE, ["gone"], 1, False, 10)
    (good,) = batcher.submit(ONE, ["good"], 1, False, 10)
    assert gone.future.cancel()
    time.sleep(0.05)
    engine.gate.set()
    assert good.future.result(10)[0].label == "good"
    with pytest.raises(Problem) as caught:
        late.future.result(10)
    assert (caught.value.status, caught.value.kind) == (503, "deadline")
    assert ["late"] not in engine.asked
    assert not any("gone" in asked for asked in engine.asked)
    batcher.close()


def test_a_stop_finishes_what_was_accepted_and_takes_no_more() -> None:
    engine, batcher = make(threads=1, batch=1)
    jobs = [batcher.submit(ONE, [str(number)], 1, False, 10)[0] for number in range(5)]
    closing = threading.Thread(target=batcher.close)
    closing.start()
    time.sleep(0.05)
    with pytest.raises(Problem) as caught:
        batcher.submit(ONE, ["more"], 1, False, 10)
    assert caught.value.status == 503
    engine.gate.set()
    closing.join(10)
    assert not closing.is_alive()
    assert [job.future.result(0)[0].label for job in jobs] == [str(number) for number in range(5)]


def test_an_error_reaches_who_waits_and_the_thread_goes_on() -> None:
    engine, batcher = make(threads=1, batch=1)
    engine.gate.set()
    (bad,) = batcher.submit(ONE, ["broken"], 1, False, 10)
    with pytest.raises(RuntimeError):
        bad.future.result(10)
    assert batcher.submit(ONE, ["fine"], 1, False, 10)[0].future.result(10)[0].label == "fine"
    batcher.close()


def test_threads_share_what_waits() -> None:
    """One thread that took all would leave the other idle."""
    engine, batcher = make(threads=2, batch=32)
    busy = [batcher.submit(ONE, [f"busy {number}"], 1, False, 10)[0] for number in range(2)]
    until = time.monotonic() + 5
    while batcher.waiting:
        assert time.monotonic() < until
        time.sleep(0.01)
    jobs = [batcher.submit(ONE, [str(number)], 1, False, 10)[0] for number in range(16)]
    engine.gate.set()
    for job in (*busy, *jobs):
        assert job.future.result(10)
    batcher.close()
    assert max(map(len, engine.asked)) == 8 and sum(map(len, engine.asked)) == 18
