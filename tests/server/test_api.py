"""The API over a real socket: what it takes, what it answers, and what it says when it cannot."""

from __future__ import annotations

import concurrent.futures
import json
from collections.abc import Callable

import pytest
import yaml

from dmin.server.settings import Limits
from tests.server.conftest import CLASSES, Live

AT = "/v1/collections/default"


def test_classify_answers_as_promised(shared: Live) -> None:
    answer = shared.http.post(f"{AT}/classify", json={"texts": ["apple plum fig", "wheel motor"], "top_k": 2})
    assert answer.status_code == 200
    body = answer.json()
    assert body["revision"] == 1
    assert len(body["answers"]) == 2
    for found in body["answers"]:
        assert set(found) == {"label", "probability", "cosine", "refused", "top", "explanation"}
        assert len(found["top"]) == 2
        assert found["explanation"] is None
        assert found["top"][0]["probability"] == found["probability"]
        assert found["top"][0]["cosine"] == found["cosine"]
        assert (found["label"] is None) == found["refused"]
        if not found["refused"]:
            assert found["label"] == found["top"][0]["label"]


def test_the_answers_are_those_of_the_classifier(shared: Live) -> None:
    from dmin import FewShotClassifier

    texts = [f"{a} {b}" for a in ("apple", "engine", "song", "cloud") for b in ("road", "drum", "melon", "rain")]
    classifier = FewShotClassifier("nearest", encoder=shared.service.settings.encoder, reject="auto").fit(CLASSES)
    found = shared.http.post(f"{AT}/classify", json={"texts": texts, "top_k": 3}).json()["answers"]
    for one, other in zip(found, classifier.answer(texts, 3), strict=True):
        assert one["label"] == (None if other.refused else other.label)
        assert one["refused"] == other.refused
        assert one["cosine"] == pytest.approx(other.score, abs=2e-6)
        assert [row["label"] for row in one["top"]] == [label for label, _ in other.top]


def test_cosines_of_the_ranked_classes_are_cosines_whatever_decides(live: Live) -> None:
    """The default head decides by a logit plus a cosine; what the API calls a cosine is one."""
    from dmin import FewShotClassifier

    classifier = FewShotClassifier(reject="auto").fit(CLASSES)
    answer = classifier.answer(["a pear and a plum"], 3)[0]
    assert [one.label for one in answer.likely] == [label for label, _ in answer.top]
    assert all(-1 <= one.cosine <= 1 for one in answer.likely)
    assert answer.likely[0].cosine == answer.score and answer.likely[0].decision == answer.decision != answer.score
    whole = classifier.predict_proba(["a pear and a plum"])[0]
    assert sorted((one.probability for one in answer.likely), reverse=True) == sorted(whole, reverse=True)


@pytest.mark.parametrize(
    ("content", "headers", "said"),
    [
        (b'{"texts": ["a"', {}, "The body is not JSON: "),
        (b'{"texts": "a"}', {}, 'body.texts: must be a list, also of one: ["..."]'),
        (b'{"texts": ["a"]}', {"Content-Type": "text/plain"}, "send the header Content-Type: application/json"),
        (b'{"text": ["a"]}', {}, "body.texts: is missing; body.text: is no field of this request"),
    ],
)
def test_a_request_that_is_wrong_is_told_what_to_change(
    shared: Live, content: bytes, headers: dict[str, str], said: str
) -> None:
    answer = shared.http.post(
        f"{AT}/classify", content=content, headers={"Content-Type": "application/json", **headers}
    )
    assert answer.status_code in (400, 422) and said in answer.json()["detail"]


def test_what_is_not_there_is_told_where_to_look(shared: Live) -> None:
    asked = {"texts": ["a"]}
    assert "GET /v1/collections lists" in shared.http.post("/v1/collections/nope/classify", json=asked).json()["detail"]
    assert "classes lists them" in shared.http.get(f"{AT}/classes/nope").json()["detail"]
    assert "/docs" in shared.http.get("/v1/nothing").json()["detail"]
    assert "only POST" in shared.http.get(f"{AT}/classify").json()["detail"]
    known = shared.http.get("/v1/collections", headers={"Authorization": "Bearer nope"})
    assert known.status_code == 401 and "leave the header Authorization out" in known.json()["detail"]


def test_explanations_add_up_to_the_score(shared: Live) -> None:
    answer = shared.http.post(f"{AT}/classify", json={"texts": ["song drum"], "explain": True}).json()["answers"][0]
    reason = answer["explanation"]
    assert reason["nearest"] == answer["top"][0]["label"]
    assert {share["text"] for share in reason["examples"]} >= set(CLASSES[reason["nearest"]])
    total = sum(share["share"] for share in reason["examples"])
    assert total == pytest.approx(reason["score"], abs=1e-4)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"texts": "one bare string"}, 422),
        ({"texts": []}, 422),
        ({"texts": [1]}, 422),
        ({"texts": ["  "]}, 422),
        ({"texts": ["a\u0000b"]}, 422),
        ({"texts": ["fine"], "top_k": 0}, 422),
        ({"texts": ["fine"], "top_k": "3"}, 422),
        ({"texts": ["fine"], "topk": 3}, 422),
        ({}, 422),
    ],
)
def test_wrong_questions_are_problems(shared: Live, body: object, status: int) -> None:
    answer = shared.http.post(f"{AT}/classify", json=body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert problem["type"].startswith("urn:dmin:problem:")
    assert problem["detail"]


def test_put_get_patch_delete_a_class(live: Live) -> None:
    made = live.http.put(
        f"{AT}/classes/sky%2Fweather", json={"examples": ["cloud rain", "storm"], "description": "sky"}
    )
    assert made.status_code == 200
    assert made.json()["label"] == "sky/weather"
    assert [item["text"] for item in made.json()["examples"]] == ["cloud rain", "storm"]
    read = live.http.get(f"{AT}/classes/sky%2Fweather")
    assert read.json() == made.json()
    assert read.headers["etag"] == f'"{made.json()["revision"]}"'
    renamed = live.http.patch(f"{AT}/classes/sky%2Fweather", json={"label": "100 % sky"})
    assert renamed.json()["label"] == "100 % sky"
    assert live.http.get(f"{AT}/classes/100%20%25%20sky").status_code == 200
    assert live.http.delete(f"{AT}/classes/100%20%25%20sky").status_code == 200
    gone = live.http.get(f"{AT}/classes/100%20%25%20sky")
    assert gone.status_code == 404
    assert gone.json()["type"] == "urn:dmin:problem:no-such-class"


def test_examples_are_added_moved_changed_and_removed(live: Live) -> None:
    added = live.http.post(f"{AT}/classes/car/examples", json={"examples": ["road map", "engine wheel brake"]}).json()
    assert added["added"] == 1  # one of the two was there
    rows = live.http.get(f"{AT}/classes/car/examples").json()["examples"]
    number = next(row["id"] for row in rows if row["text"] == "road map")
    moved = live.http.patch(f"{AT}/classes/car/examples/{number}", json={"label": "travel", "text": "road map of it"})
    assert moved.status_code == 200
    travel = live.http.get(f"{AT}/classes/travel").json()["examples"]
    assert [row["text"] for row in travel] == ["road map of it"]
    assert live.http.delete(f"{AT}/classes/travel/examples/{travel[0]['id']}").status_code == 200
    assert live.http.get(f"{AT}/classes/travel").status_code == 404  # it went with its last example
    assert live.http.delete(f"{AT}/classes/car/examples/999999").status_code == 404


def test_a_new_class_is_answered_at_once_and_undo_takes_it_back(live: Live) -> None:
    text = "doctor nurse pill"
    before = live.http.post(f"{AT}/classify", json={"texts": [text]}).json()
    live.http.put(f"{AT}/classes/health", json={"examples": [text]})
    after = live.http.post(f"{AT}/classify", json={"texts": [text]}).json()
    assert after["answers"][0]["top"][0]["label"] == "health"
    assert after["revision"] > before["revision"]
    assert live.http.post(f"{AT}/undo").status_code == 200
    assert live.http.post(f"{AT}/classify", json={"texts": [text]}).json()["answers"] == before["answers"]


def test_two_writers_of_one_class(live: Live) -> None:
    tag = live.http.get(f"{AT}/classes/car").headers["etag"]
    first = live.http.put(f"{AT}/classes/car", json={"examples": ["one"]}, headers={"If-Match": tag})
    second = live.http.put(f"{AT}/classes/car", json={"examples": ["two"]}, headers={"If-Match": tag})
    assert first.status_code == 200
    assert second.status_code == 412
    assert second.json()["changes"][0]["summary"].startswith("class car:")
    assert second.headers["etag"] == first.headers["etag"]
    assert [row["text"] for row in live.http.get(f"{AT}/classes/car").json()["examples"]] == ["one"]


def test_an_idempotency_key_makes_a_retry_harmless(live: Live) -> None:
    headers = {"Idempotency-Key": "abc"}
    body = {"examples": ["sail boat"]}
    first = live.http.post(f"{AT}/classes/sea/examples", json=body, headers=headers)
    again = live.http.post(f"{AT}/classes/sea/examples", json=body, headers=headers)
    assert again.json() == first.json()
    assert again.headers["idempotency-replayed"] == "true"
    other = live.http.post(f"{AT}/classes/sea/examples", json={"examples": ["tide"]}, headers=headers)
    assert other.status_code == 422
    assert len(live.http.get(f"{AT}/history").json()["changes"]) == 2


def test_collections_are_made_changed_and_removed(live: Live) -> None:
    made = live.http.post("/v1/collections", json={"name": "other", "settings": {"reject": None}})
    assert made.status_code == 201
    assert live.http.post("/v1/collections", json={"name": "other"}).status_code == 409
    assert live.http.post("/v1/collections/other/classify", json={"texts": ["x"]}).status_code == 409
    put = live.http.put("/v1/collections/other", json={"classes": CLASSES, "settings": {"reject": None}})
    assert put.json()["classes"] == 3
    answer = live.http.post("/v1/collections/other/classify", json={"texts": ["zzz"]}).json()["answers"][0]
    assert not answer["refused"]
    patched = live.http.patch("/v1/collections/other", json={"settings": {"reject": 0.999999}, "description": "strict"})
    assert patched.json()["description"] == "strict"
    refused = live.http.post("/v1/collections/other/classify", json={"texts": ["zzz"]}).json()["answers"][0]
    assert refused["refused"]
    assert refused["label"] is None
    assert {item["name"] for item in live.http.get("/v1/collections").json()["collections"]} == {"default", "other"}
    assert live.http.delete("/v1/collections/other").status_code == 200
    assert live.http.get("/v1/collections/other").status_code == 404


@pytest.mark.parametrize(("kind", "media"), [("yaml", "application/yaml"), ("jsonl", "application/x-ndjson")])
def test_export_and_import_give_the_same_collection(live: Live, kind: str, media: str) -> None:
    live.http.put(f"{AT}/classes/odd", json={"examples": ['"quoted", text', "emoji 🎈: yes", "line\nbreak", "- no"]})
    file = live.http.get(f"{AT}/export", params={"format": kind})
    assert file.status_code == 200
    assert file.headers["content-type"].startswith(media)
    done = live.http.post("/v1/collections/copy/import", content=file.content, headers={"Content-Type": media})
    assert done.status_code == 200, done.text
    again = live.http.get("/v1/collections/copy/export", params={"format": kind})
    assert again.text == file.text
    if kind == "yaml":
        assert yaml.safe_load(file.text)["car"] == CLASSES["car"]
    else:
        assert json.loads(file.text.splitlines()[0]) == {"text": "apple pear plum", "label": "fruit"}


def test_import_takes_a_csv_and_all_or_nothing(live: Live) -> None:
    good = b'text,label\nwave shore,sea\n"sand, tide",sea\n'
    assert live.http.post(f"{AT}/import", content=good, headers={"Content-Type": "text/csv"}).json()["added"] == 2
    revision = live.http.get(AT).json()["revision"]
    for bad in (b"text,label\nfine,sea\n,sea\n", b"txt,label\na,b\n", b"", b"\xff\xfe\x00", b"text,label\na\n"):
        answer = live.http.post(f"{AT}/import", content=bad, headers={"Content-Type": "text/csv"})
        assert answer.status_code == 422, answer.text
        assert "/tmp" not in answer.text  # noqa: S108
    assert live.http.get(AT).json()["revision"] == revision
    assert live.http.post(f"{AT}/import", content=good, headers={"Content-Type": "text/plain"}).status_code == 415


def test_check_map_and_evaluate(shared: Live) -> None:
    report = shared.http.post(f"{AT}/check").json()
    assert report["report"]["classes"] == 3
    drawn = shared.http.post(f"{AT}/map", json={"texts": ["apple plum"]}).json()
    assert len(drawn["examples"]) == 9
    assert all(-1.01 <= point["x"] <= 1.01 and -1.01 <= point["y"] <= 1.01 for point in drawn["examples"])
    assert drawn["texts"][0]["label"] is None
    rows = [{"text": text, "label": label} for label, texts in CLASSES.items() for text in texts]
    rows.append({"text": "apple pear plum", "label": "nowhere"})
    found = shared.http.post(f"{AT}/evaluate", json={"rows": rows}).json()
    right = sum(found["confusion"][row][row] for row in range(3))
    assert found["texts"] == 10
    assert found["accuracy"] == pytest.approx(right / 10)
    assert found["low"] < found["accuracy"] < found["high"]
    assert found["unknown_labels"] == ["nowhere"]
    assert sum(map(sum, found["confusion"])) == 10
    assert len(found["wrong"]) == 10 - right
    file = "text,label\n" + "".join(f"{row['text']},{row['label']}\n" for row in rows)
    same = shared.http.post(f"{AT}/evaluate", content=file.encode(), headers={"Content-Type": "text/csv"}).json()
    assert same == found


def test_model_health_ready_metrics_docs(shared: Live) -> None:
    assert shared.http.get("/healthz").json()["status"] == "ok"
    assert shared.http.get("/readyz").json()["status"] == "ok"
    model = shared.http.get("/v1/model").json()
    assert model["width"] == 24
    assert "/" not in (model["encoder"] or "")
    shared.http.post(f"{AT}/classify", json={"texts": ["a b", "c"]})
    metrics = shared.http.get("/metrics").text
    assert "dmin_texts_total" in metrics
    assert 'route="/v1/collections/{name}/classify"' in metrics
    assert shared.http.get("/openapi.json").json()["openapi"].startswith("3.1")
    docs = shared.http.get("/docs")
    assert "/v1/collections/{name}/classify" in docs.text
    assert "http://" not in docs.text.replace("http://127.0.0.1", "")
    assert "https://" not in docs.text


def test_requests_at_the_same_time_share_batches(start: Callable[..., Live]) -> None:
    live = start(workers=1)
    live.fill()
    live.fill("second")
    texts = [f"apple {number}" for number in range(64)]
    alone = [live.http.post(f"{AT}/classify", json={"texts": [text]}).json()["answers"][0] for text in texts]
    live.service.engine.memory._kept.clear()
    before = _batches(live)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        names = ["default", "second"]
        found = list(
            pool.map(
                lambda item: live.http.post(
                    f"/v1/collections/{names[item[0] % 2]}/classify", json={"texts": [item[1]]}
                ).json()["answers"][0],
                enumerate(texts),
            )
        )
    for one, other in zip(found, alone, strict=True):
        assert one["label"] == other["label"]
        assert one["cosine"] == pytest.approx(other["cosine"], abs=1e-4)
    assert _batches(live) - before < 64


def _batches(live: Live) -> float:
    line = next(row for row in live.http.get("/metrics").text.splitlines() if row.startswith("dmin_batch_texts_count"))
    return float(line.split()[1])


def test_limits_of_a_request(start: Callable[..., Live]) -> None:
    live = start(Limits(texts=3, text_length=20, body_bytes=2000, examples=9))
    live.fill()
    assert live.http.post(f"{AT}/classify", json={"texts": ["a"] * 3}).status_code == 200
    assert live.http.post(f"{AT}/classify", json={"texts": ["a"] * 4}).status_code == 422
    long = live.http.post(f"{AT}/classify", json={"texts": ["a" * 21]})
    assert long.status_code == 422
    assert "20" in long.json()["detail"]
    huge = live.http.post(f"{AT}/classify", json={"texts": ["a" * 5000]})
    assert huge.status_code == 413

    def pieces() -> object:  # without Content-Length
        for _ in range(100):
            yield b" " * 1000

    assert live.http.post(f"{AT}/classify", content=pieces()).status_code == 413
    assert live.http.get("/healthz").status_code == 200


def test_suggestions_come_with_a_reason_also_before_there_are_classes(live: Live) -> None:
    pile = [f"{one} {two}" for one in ("apple", "wheel", "song", "cloud") for two in ("plum", "road", "drum", "rain")]
    found = live.http.post(f"{AT}/suggest", json={"texts": pile, "n": 5}).json()["suggestions"]
    assert len(found) == 5
    assert all(pile[item["index"]] == item["text"] and item["reason"] for item in found)
    assert len({item["index"] for item in found}) == 5
    live.http.post("/v1/collections", json={"name": "empty"})
    empty = live.http.post("/v1/collections/empty/suggest", json={"texts": pile, "n": 3})
    assert empty.status_code == 200
    assert len(empty.json()["suggestions"]) == 3
    again = live.http.post("/v1/collections/empty/suggest", json={"texts": pile, "n": 3})
    assert again.json() == empty.json()
