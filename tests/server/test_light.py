"""The service on the default classifier runs without torch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CODE = """
import sys
for name in ("torch", "transformers", "accelerate"):
    sys.modules[name] = None  # an import of it fails
from tests.server.conftest import Live
from dmin.server.settings import Settings

live = Live(Settings(store={store!r}, workers=1))
live.fill()
answer = live.http.post("/v1/collections/default/classify", json={{"texts": ["a red apple"]}})
print(answer.status_code, answer.json())
live.close()
"""


def test_the_service_answers_without_torch(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    code = CODE.format(store=str(tmp_path / "store.sqlite"))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("200") and "'label': 'fruit'" in done.stdout
