"""Keys, roles, collections of a key, limits per minute, foreign pages, headers, logs."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from sqlalchemy import select, update

from dmin.errors import ConfigError, DminError
from dmin.server.database import Database
from dmin.server.keys import KeyRing, create_key, list_keys, revoke_key
from dmin.server.run import check_public
from dmin.server.settings import Limits, Settings, is_loopback, store_url
from dmin.server.tables import keys
from tests.server.conftest import Live

AT = "/v1/collections/default"


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def test_on_loopback_no_key_is_needed_until_one_is_made(live: Live) -> None:
    assert live.http.get("/v1/me").json()["role"] == "admin"
    secret, _ = create_key(live.service.database, "ann", "read")
    live.service.ring.refresh()
    answer = live.http.get("/v1/collections")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["content-type"] == "application/problem+json"
    assert live.http.get("/v1/collections", headers=bearer(secret)).status_code == 200
    assert live.http.get("/healthz").status_code == 200
    assert live.http.get("/").status_code == 200  # the page asks for the key


def test_keys_are_hashed_at_rest(live: Live) -> None:
    secret, key = create_key(live.service.database, "ann", "admin")
    with live.service.database.reading() as connection:
        stored = connection.execute(select(keys)).first()
    assert secret not in str(stored)
    assert secret.split("_", 2)[2] not in str(stored)
    assert len(secret.split("_", 2)[2]) >= 43  # 256 random bits
    assert stored is not None
    assert stored.id == key.id


def test_roles_include_each_other_in_order(live: Live) -> None:
    made = {role: create_key(live.service.database, role, role)[0] for role in ("read", "write", "admin")}
    live.service.ring.refresh()
    asked = {
        "read": ("POST", f"{AT}/classify", {"texts": ["apple"]}),
        "write": ("PUT", f"{AT}/classes/new", {"examples": ["a"]}),
        "admin": ("POST", "/v1/collections", {"name": "c-"}),
    }
    order = ["read", "write", "admin"]
    for role, secret in made.items():
        for needed, (method, path, body) in asked.items():
            if needed == "admin":
                body = {"name": f"made-by-{role}"}
            answer = live.http.request(method, path, json=body, headers=bearer(secret))
            allowed = order.index(role) >= order.index(needed)
            assert (answer.status_code < 300) == allowed, (role, needed, answer.text)
            assert allowed or answer.status_code == 403
    assert (
        live.http.get(f"{AT}/history", headers=bearer(made["read"])).json()["changes"][0]["who"].startswith("write (")
    )


def test_a_key_of_one_collection_sees_only_that(live: Live) -> None:
    live.fill("other")
    secret, _ = create_key(live.service.database, "shop", "admin", ("other",))
    live.service.ring.refresh()
    headers = bearer(secret)
    assert [c["name"] for c in live.http.get("/v1/collections", headers=headers).json()["collections"]] == ["other"]
    assert live.http.get(AT, headers=headers).status_code == 403
    assert live.http.post(f"{AT}/classify", json={"texts": ["a"]}, headers=headers).status_code == 403
    assert live.http.post("/v1/collections", json={"name": "third"}, headers=headers).status_code == 403
    assert live.http.post("/v1/collections/other/classify", json={"texts": ["a"]}, headers=headers).status_code == 200


def test_expired_revoked_and_wrong_keys(live: Live) -> None:
    database = live.service.database
    old, old_key = create_key(database, "old", "read", days=1)
    with database.writing() as connection:
        past = "2020-01-01T00:00:00.000Z"
        connection.execute(update(keys).where(keys.c.id == old_key.id).values(expires_at=past))
    gone, gone_key = create_key(database, "gone", "read")
    revoke_key(database, gone_key.id)
    live.service.ring.refresh()
    details = []
    for secret in (old, gone, "dmin_00000000_x", "nonsense", old[:-1], "a_b_\u00fc", old + "x"):
        headers = [(b"Authorization", b"Bearer " + secret.encode("latin-1"))]
        answer = live.http.get("/v1/collections", headers=headers)
        assert answer.status_code == 401, secret
        details.append(answer.json()["detail"])
    assert details[:2] == ["The key is expired.", "The key is revoked."]
    assert details[2].startswith("The key is not known: `dmin serve keys list`")
    with pytest.raises(DminError, match="revoked already"):
        revoke_key(database, gone_key.id)
    with pytest.raises(DminError, match="unknown key"):
        revoke_key(database, "nope")


def test_a_revoked_key_stops_within_a_second_of_a_running_service(live: Live) -> None:
    import time

    other = Database(live.service.settings.store)  # as another process has it
    secret, key = create_key(other, "ann", "read")
    until = time.monotonic() + 5
    while live.http.get("/v1/collections", headers=bearer(secret)).status_code != 200:
        assert time.monotonic() < until
    revoke_key(other, key.id)
    start = time.monotonic()
    while live.http.get("/v1/collections", headers=bearer(secret)).status_code != 401:
        assert time.monotonic() < start + 2
    other.close()


def test_comparison_takes_place_also_for_keys_that_are_not_there(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    import hmac

    database = Database(str(tmp_path / "s.sqlite"))
    database.migrate()
    ring = KeyRing(database)
    compared = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda one, two: compared.append(len(one)) or real(one, two))
    assert ring.find("dmin_ffffffff_abc") is None
    assert ring.find("x") is None
    assert compared == [64, 64]
    database.close()


def test_bad_keys_cannot_be_made(tmp_path) -> None:  # type: ignore[no-untyped-def]
    database = Database(str(tmp_path / "s.sqlite"))
    database.migrate()
    with pytest.raises(DminError, match="did you mean 'write'"):
        create_key(database, "x", "writ")
    with pytest.raises(ConfigError):
        create_key(database, " ", "read")
    with pytest.raises(ConfigError):
        create_key(database, "x", "read", days=-1)
    assert list_keys(database) == []
    database.close()


def test_requests_per_minute(start: Callable[..., Live]) -> None:
    live = start(Limits(requests_per_minute=5))
    statuses = [live.http.get("/v1/me").status_code for _ in range(12)]
    assert 429 in statuses
    assert statuses[:5] == [200] * 5
    answer = next(a for a in (live.http.get("/v1/me") for _ in range(12)) if a.status_code == 429)
    assert 1 <= int(answer.headers["retry-after"]) <= 60


def test_a_public_address_needs_a_key(tmp_path) -> None:  # type: ignore[no-untyped-def]
    database = Database(str(tmp_path / "s.sqlite"))
    database.migrate()
    with pytest.raises(ConfigError, match="keys create"):
        check_public(Settings(host="0.0.0.0"), database)  # noqa: S104
    check_public(Settings(), database)
    create_key(database, "x", "admin")
    check_public(Settings(host="0.0.0.0"), database)  # noqa: S104
    database.close()
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8")] == [True] * 4
    assert [is_loopback(host) for host in ("0.0.0.0", "192.168.1.1", "example.org", "::")] == [False] * 4  # noqa: S104


def test_pages_of_other_sites_are_kept_out(live: Live) -> None:
    answer = live.http.post(f"{AT}/undo", headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403
    assert live.http.post(f"{AT}/undo", headers={"Host": "evil.example"}).status_code == 421
    assert live.http.get("/v1/collections", headers={"Host": "evil.example"}).status_code == 421
    own = live.http.post(f"{AT}/undo", headers={"Origin": live.url})
    assert own.status_code == 200
    before = live.http.options(
        "/v1/collections", headers={"Origin": "https://x.example", "Access-Control-Request-Method": "GET"}
    )
    assert "access-control-allow-origin" not in before.headers


def test_cors_for_origins_that_were_allowed(start: Callable[..., Live]) -> None:
    live = start(origins=("https://good.example",))
    live.fill()
    answer = live.http.post(f"{AT}/classify", json={"texts": ["a"]}, headers={"Origin": "https://good.example"})
    assert answer.headers["access-control-allow-origin"] == "https://good.example"
    bad = live.http.post(f"{AT}/classify", json={"texts": ["a"]}, headers={"Origin": "https://bad.example"})
    assert bad.status_code == 403


def test_every_answer_has_the_security_headers(live: Live) -> None:
    for path in ("/", "/docs", "/v1/collections", "/nothing", "/page/style.css"):
        answer = live.http.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    for path in ("/page/../app.py", "/page/..%2Fapp.py", "/page/%2e%2e/keys.py", "/page/docs.html.j2"):
        assert live.http.get(path).status_code == 404


def test_logs_are_without_texts_unless_asked(start: Callable[..., Live], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    quiet, loud = start(), start(log_texts=True, store=str(start().service.settings.store) + "2")
    for live in (quiet, loud):
        live.fill()
        live.http.post(f"{AT}/classify", json={"texts": ["a very private text"]})
        live.http.put(f"{AT}/classes/secret-label", json={"examples": ["another private text"]})
    from dmin.server.observing import JsonFormatter

    lines = [JsonFormatter().format(record) for record in caplog.records if record.name == "dmin.server.requests"]
    assert len([line for line in lines if "private" in line]) == 1  # the loud one's classify
    assert not any("secret-label" in line for line in lines)
    import json

    found = json.loads(lines[0])
    assert {"at", "level", "request", "method", "route", "status", "ms", "who"} <= set(found)


def test_stores_of_other_kinds_are_refused() -> None:
    with pytest.raises(ConfigError, match="postgresql://"):
        store_url("mysql://x/y")
    assert store_url("postgres://u@h/d") == "postgresql+psycopg://u@h/d"


def test_an_unreachable_database_is_one_line(tmp_path) -> None:  # type: ignore[no-untyped-def]
    database = Database("postgresql://nobody:password@127.0.0.1:1/none")
    with pytest.raises(DminError) as caught:
        database.migrate()
    assert "password" not in str(caught.value)
    assert "\n" not in str(caught.value)
