"""The examples with which a service begins."""

from __future__ import annotations

from dmin.server.run import fill
from tests.server.conftest import CLASSES, Live

AT = "/v1/collections/default"


def test_what_a_service_began_with_is_not_undone(live: Live) -> None:
    live.http.delete(AT)
    assert "imported" in fill(live.service, CLASSES)
    live.http.post(f"{AT}/classes/fruit/examples", json={"examples": ["a quince"]})
    assert live.http.post(f"{AT}/undo").status_code == 200
    assert live.http.post(f"{AT}/undo").status_code == 409
    said = fill(live.service, CLASSES)
    assert "has 3 classes in 'default' already" in said and "--store NEW" in said


def test_an_empty_default_collection_is_filled_again(live: Live) -> None:
    live.http.delete(AT)
    live.http.post("/v1/collections", json={"name": "default"})  # as the page does when there is none
    assert "imported 9 examples in 3 classes" in fill(live.service, CLASSES)
    assert live.http.post(f"{AT}/undo").status_code == 409
    assert len(live.http.get(f"{AT}/classes").json()["classes"]) == 3
