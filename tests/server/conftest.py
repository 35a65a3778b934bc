"""A real service over a real socket, with the tiny random encoder; a real PostgreSQL where the program is there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import uvicorn

from dmin.server.app import create_app
from dmin.server.database import Database
from dmin.server.service import Service
from dmin.server.settings import Limits, Settings
from dmin.server.store import Store

STRESS = os.environ.get("DMIN_STRESS") == "1"
CLASSES = {
    "fruit": ["apple pear plum", "cherry grape melon", "fig apple grape"],
    "car": ["engine wheel brake", "motor tyre road", "car brake wheel"],
    "music": ["song tune melody", "guitar drum choir", "rhythm song drum"],
}


class Live:
    """A service that listens on a free port of loopback, in a thread of this process."""

    def __init__(self, settings: Settings) -> None:
        self.service = Service(settings)
        self.app = create_app(self.service)
        config = uvicorn.Config(self.app, host="127.0.0.1", port=0, log_config=None, access_log=False)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        until = time.monotonic() + 30
        while not self._server.started:
            assert time.monotonic() < until, "the service did not start"
            time.sleep(0.01)
        self.port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.http = httpx.Client(base_url=self.url, timeout=30, trust_env=False)

    def fill(self, name: str = "default") -> None:
        """Make a collection of three classes."""
        answer = self.http.post("/v1/collections", json={"name": name, "classes": CLASSES})
        assert answer.status_code == 201, answer.text

    def close(self) -> None:
        """Stop cleanly."""
        self.http.close()
        self._server.should_exit = True
        self._thread.join(20)
        assert not self._thread.is_alive(), "the service did not stop"


@pytest.fixture
def settings(tmp_path: Path, tiny_encoder_folder: Path) -> Settings:
    """A service with the tiny encoder and a store of its own."""
    return Settings(store=str(tmp_path / "store.sqlite"), encoder=str(tiny_encoder_folder), model="nearest", workers=2)


@pytest.fixture
def start(settings: Settings) -> Iterator[Callable[..., Live]]:
    """Start services with other settings; all are stopped at the end."""
    running: list[Live] = []

    def begin(limits: Limits | None = None, **changes: object) -> Live:
        chosen = replace(settings, limits=limits or settings.limits, **changes)  # type: ignore[arg-type]
        running.append(Live(chosen))
        return running[-1]

    yield begin
    for live in running:
        live.close()


@pytest.fixture
def live(start: Callable[..., Live]) -> Live:
    """A service with the collection `default`."""
    found = start()
    found.fill()
    return found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, tiny_encoder_folder: Path) -> Iterator[Live]:
    """A service with the collection `default` for tests that leave it as it is."""
    store = str(tmp_path_factory.mktemp("shared") / "store.sqlite")
    found = Live(Settings(store=store, encoder=str(tiny_encoder_folder), model="nearest", workers=2))
    found.fill()
    yield found
    found.close()


# PostgreSQL


def postgres_programs() -> Path | None:
    """Debian's folder of initdb and pg_ctl, if it is there."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    there = shutil.which("initdb")
    return Path(there).parent if there else None


class Cluster:
    """A private PostgreSQL in a temporary folder; it refuses to run as root, so the user postgres runs it."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self._folder = programs, folder
        self._data = folder / "data"
        self.port = 20000 + os.getpid() % 20000
        if os.getuid() == 0:
            shutil.chown(folder, "postgres")
        self._run("initdb", "-D", str(self._data), "-A", "trust", "-U", "dmin", "--no-sync")
        self.start()

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        if os.getuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", timeout=60)

    def start(self) -> None:
        """Start the server and wait for it."""
        options = f"-p {self.port} -k {self._folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        self._run("pg_ctl", "-D", str(self._data), "-w", "-o", options, "-l", str(self._folder / "log"), "start")

    def stop(self) -> None:
        """Stop the server at once; connections break."""
        self._run("pg_ctl", "-D", str(self._data), "-w", "-m", "immediate", "stop")

    def database(self) -> str:
        """Make a database; returns its address."""
        import psycopg

        name = f"test_{uuid.uuid4().hex[:8]}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[arg-type]
        return self.address(name)

    def address(self, name: str) -> str:
        """The address of a database."""
        return f"postgresql://dmin@127.0.0.1:{self.port}/{name}"


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL of the tests' own."""
    programs = postgres_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed here (Debian: apt-get install postgresql): its tests did NOT run")
    folder = Path(tempfile.mkdtemp(prefix="dmin-postgresql-"))  # pytest's own folders are closed to other users
    try:
        found = Cluster(programs, folder)
        yield found
        found.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store of each kind."""
    address = str(tmp_path / "store.sqlite")
    if request.param == "postgresql":
        address = request.getfixturevalue("cluster").database()
    database = Database(address)
    database.migrate()
    yield Store(database)
    database.close()
