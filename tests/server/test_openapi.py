"""Schemathesis reads the OpenAPI document and tries what it promises; answers must be what it describes."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.server.conftest import STRESS, Live

pytestmark = pytest.mark.slow

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
MODES = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)


def test_the_service_keeps_what_its_document_says(live: Live) -> None:
    document = schemathesis.openapi.from_url(f"{live.url}/openapi.json")
    tried: dict[str, int] = {}
    for found in document.get_all_operations():
        operation = found.ok()
        for mode in MODES:
            try:
                cases = operation.as_strategy(generation_mode=mode)
                _try(cases, operation.label, tried)
            except Exception as error:
                if type(error).__name__ != "Unsatisfiable":  # nothing of such an operation can be wrong
                    raise
    assert len(tried) >= 25
    assert sum(tried.values()) >= 150
    assert live.http.get("/readyz").status_code == 200


def _try(cases: Any, label: str, tried: dict[str, int]) -> None:
    @settings(
        max_examples=50 if STRESS else 5,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def one(case: Any) -> None:
        tried[label] = tried.get(label, 0) + 1
        case.call_and_validate(checks=CHECKS, timeout=30)

    one()
