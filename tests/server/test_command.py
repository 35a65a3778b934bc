"""`dmin serve` as a command: keys, backup, examples, mistakes; and the files that deploy it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
import yaml

from dmin.cli.app import run

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def test_keys_are_made_listed_and_revoked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = ["--store", str(tmp_path / "s.sqlite")]
    made = ["serve", "keys", "create", "website", "--role", "write", "--collection", "a", "--days", "3"]
    assert run([*made, *store]) == 0
    shown = capsys.readouterr()
    secret = shown.out.strip()
    assert secret.startswith("dmin_")
    assert "shown this once" in shown.err
    assert run(["serve", "keys", "list", *store]) == 0
    line = capsys.readouterr().out
    assert secret not in line
    identifier, name, role, where, state = line.strip().split("\t")
    assert (name, role, where) == ("website", "write", "a")
    assert state.startswith("active until ")
    assert run(["serve", "keys", "revoke", identifier, *store]) == 0
    capsys.readouterr()
    run(["serve", "keys", "list", *store])
    assert capsys.readouterr().out.strip().endswith("revoked")
    assert run(["serve", "keys", "revoke", "nope", *store]) == 2
    assert "unknown key 'nope'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "keys create"),  # noqa: S104
        (["--store", "mysql://x/y"], "postgresql://"),
        (["--store", "/proc/nowhere/s.sqlite"], "cannot make"),
        (["--port", "99999"], "--port"),
        (["--examples", "nothing-of-this-name"], "nothing-of-this-name"),
        (["--examples", "starter", "--per-class", "0"], "--per-class"),
        (["--batch", "0"], "--batch"),
        (["backup", "copy.sqlite", "--store", "none.sqlite"], "no store at"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "dmin.server.run.log_to_standard_error", lambda: None
    )  # pytest's capture ends before the logger does
    assert run(["serve", *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith("error: ")
    assert said in error
    assert "\n" not in error


def test_a_port_that_is_taken_is_said(tmp_path: Path, tiny_encoder_folder: Path) -> None:
    import socket

    from dmin.errors import ConfigError
    from dmin.server.run import _socket
    from dmin.server.settings import Settings

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match="another --port"):
            _socket(Settings(port=taken.getsockname()[1]))


def test_the_parts_of_an_answer_do_not_wait_for_each_other() -> None:
    """Without TCP_NODELAY every answer came 40 ms late: its body waited until the header was acknowledged."""
    import asyncio
    import socket

    from dmin.server.run import _socket
    from dmin.server.settings import Settings

    async def at_once() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def accepted(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            peer = writer.get_extra_info("socket")
            found.set_result(peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listening = _socket(Settings(port=0))
        async with await asyncio.start_server(accepted, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname()[:2])
            try:
                return await asyncio.wait_for(found, 10)
            finally:
                writer.close()

    assert asyncio.run(at_once()) != 0


def test_the_command_serves_examples_and_stops(tmp_path: Path, tiny_encoder_folder: Path) -> None:
    examples = tmp_path / "intents.yaml"
    examples.write_text("fruit: [apple pear, plum fig, cherry]\ncar: [wheel motor, brake road]\n")
    store = tmp_path / "s.sqlite"
    command = [sys.executable, "-m", "dmin", "serve", "--examples", str(examples), "--store", str(store)]
    command += ["--port", "0", "--model", "nearest", "--encoder", str(tiny_encoder_folder), "--per-class", "2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        filled, serving = process.stdout.readline(), process.stdout.readline()
        assert filled.startswith("imported 4 examples in 2 classes")
        url = next(word for word in serving.split() if word.startswith("http://127.0.0.1:"))
        with httpx.Client(base_url=url, trust_env=False, timeout=20) as http:
            until = time.monotonic() + 30
            while True:
                try:
                    asked = {"texts": ["apple pear"], "top_k": 3, "explain": False}
                    answer = http.post("/v1/collections/default/classify", json=asked)
                    break
                except httpx.TransportError:
                    assert time.monotonic() < until
                    time.sleep(0.1)
        assert answer.status_code == 200
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
        assert '"route": "/v1/collections/{name}/classify"' in log
        assert "apple" not in log
    finally:
        if process.poll() is None:
            process.kill()


def test_the_files_that_deploy_it_name_what_exists() -> None:
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    assert {"service", "database"} == set(compose["services"])
    kinds = [item["kind"] for item in yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text())]
    assert kinds == ["Deployment", "Service"]
    docker = (ROOT / "Dockerfile").read_text()
    assert "USER 10001" in docker
    assert "dmin[serve]" in docker or "'.[serve]'" in docker
    assert "dmin serve" in (ROOT / "deploy" / "dmin.service").read_text()
    for name in ("serve", "keys", "postgresql", "behind-a-proxy", "what-a-text-costs"):
        assert (ROOT / "docs" / "how-to" / f"{name}.md").is_file()


def test_a_service_starts_no_threads_of_the_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would spin beside the threads that compute; the other commands ask for them."""
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")
    assert run(["serve", "--store", "mysql://x/y"]) == 2  # the store is opened after the threads are settled
    assert os.environ["TOKENIZERS_PARALLELISM"] == "false"
