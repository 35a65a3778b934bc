"""Who may do what: bearer keys, roles, limits per key, and what a browser of another site may not."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from fastapi import HTTPException, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dmin.server.keys import ROLES, KeyRing, Role
from dmin.server.problems import Problem
from dmin.server.settings import Settings, is_loopback

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"x-frame-options": b"DENY",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}
_KEPT = re.compile("%(2F|2f|25)")
_UPLOADS = ("/import", "/evaluate", "/suggest", "/map")

UNKNOWN_KEY = "The key is not known: `dmin serve keys list` shows those of the store."
NO_KEYS = "The key is not known; this service needs none: leave the header Authorization out."


@dataclass(frozen=True)
class Caller:
    """Who sent a request."""

    who: str
    role: Role
    collections: tuple[str, ...] | None = None  # None: all

    def may(self, needed: Role) -> bool:
        """Does its role include this one?"""
        return ROLES.index(self.role) >= ROLES.index(needed)

    def sees(self, collection: str) -> bool:
        """Is this collection one of its own?"""
        return self.collections is None or collection in self.collections


class Gate:
    """Finds the caller of a request, and turns away who has no right or asks too often."""

    def __init__(self, ring: KeyRing, settings: Settings) -> None:
        self._ring, self._settings = ring, settings
        self._counts: dict[str, tuple[int, int]] = {}  # caller -> (minute, requests)
        self._lock = threading.Lock()

    @property
    def keys_needed(self) -> bool:
        """Must a request carry a key?"""
        return self._settings.public or self._ring.needed

    def caller(self, request: Request) -> Caller:
        """Whoever sent the request; a 401 problem without a good key where one is needed."""
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if not secret:
            if self.keys_needed:
                raise _unauthorized("A key is needed: send the header Authorization: Bearer KEY.")
            return self._counted(Caller("local", "admin"))
        key = self._ring.find(secret.strip()) if scheme.lower() == "bearer" else None
        if key is None:
            raise _unauthorized(UNKNOWN_KEY if self.keys_needed else NO_KEYS)
        if key.state != "active":
            raise _unauthorized(f"The key is {key.state}.")
        return self._counted(Caller(f"{key.name} ({key.id})", key.role, key.collections))

    def _counted(self, caller: Caller) -> Caller:
        """Count a request; a 429 problem beyond the limit of the minute."""
        most = self._settings.limits.requests_per_minute
        minute = int(time.time() // 60)
        with self._lock:
            before, count = self._counts.get(caller.who, (minute, 0))
            count = count + 1 if before == minute else 1
            self._counts[caller.who] = (minute, count)
        if most and count > most:
            wait = math.ceil(60 - time.time() % 60)
            raise Problem(
                429, "too-many-requests", f"{most} requests per minute are allowed.", {"Retry-After": str(max(1, wait))}
            )
        return caller


def _unauthorized(detail: str) -> Problem:
    return Problem(401, "unauthorized", detail, {"WWW-Authenticate": "Bearer"})


def needs(role: Role) -> Callable[[Request], Awaitable[Caller]]:
    """A dependency that finds the caller and asks for a role, and for the collection that the address names."""

    async def check(request: Request) -> Caller:
        caller: Caller = request.app.state.gate.caller(request)
        request.state.who = caller.who
        name = request.path_params.get("name")
        if name is not None and not caller.sees(name):
            raise Problem(403, "forbidden", "The key is not for this collection.")
        if not caller.may(role):
            raise Problem(403, "forbidden", f"The key has the role {caller.role}; {role} is needed.")
        return caller

    return check


class Shield:
    """ASGI middleware: body sizes, foreign hosts and origins, security headers, and slashes inside labels."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        guarded = _with_headers(send)
        try:
            scope = keep_encoded_slashes(scope)
            self._check_source(scope)
            limit = self._limit(scope)
            await self._app(scope, _bounded(scope, receive, limit), guarded)
        except Problem as problem:
            await problem.response()(scope, receive, guarded)

    def _limit(self, scope: Scope) -> int:
        large = scope["path"].endswith(_UPLOADS)
        return self._settings.limits.upload_bytes if large else self._settings.limits.body_bytes

    def _check_source(self, scope: Scope) -> None:
        """A page of another site may not reach the service through the user's browser."""
        headers = {name: value.decode("latin-1") for name, value in scope["headers"] if name in (b"host", b"origin")}
        host = headers.get(b"host", "")
        name = (urlsplit(f"//{host}").hostname or "") if host else ""
        allowed = {self._settings.host, *self._settings.hosts}
        if not self._settings.public and not (is_loopback(name) or name in allowed):
            raise Problem(421, "wrong-host", "This service answers under its own name only (--allow-host adds one).")
        origin = headers.get(b"origin")
        if origin is None or origin in self._settings.origins or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            return
        if urlsplit(origin).netloc != host:
            raise Problem(403, "foreign-origin", "Pages of other sites may not change anything here.")


def keep_encoded_slashes(scope: Scope) -> Scope:
    """Leave %2F and %25 of the address encoded, so that a label may hold a slash; `decoded` reads such a part."""
    raw: bytes | None = scope.get("raw_path")
    if not raw or b"%" not in raw:
        return scope
    path = _KEPT.sub(lambda found: "%25" + found[1].upper(), raw.split(b"?")[0].decode("latin-1"))
    try:
        return {**scope, "path": unquote(path, errors="strict")}
    except UnicodeDecodeError as error:
        raise Problem(400, "malformed", "The address is not UTF-8.") from error


def decoded(part: str) -> str:
    """A part of an address whose slashes and percent signs were left encoded."""
    return _KEPT.sub(lambda found: "%" if found[1] == "25" else "/", part)


def _bounded(scope: Scope, receive: Receive, limit: int) -> Receive:
    """Count the bytes of a body while they come."""
    declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    detail, headers = f"A body may have {limit:,} bytes here.", {"Connection": "close"}
    if declared.isdigit() and int(declared) > limit:
        raise Problem(413, "too-large", detail, headers)
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:  # FastAPI passes on this kind of error only from the reading of a body
            raise HTTPException(413, detail, headers)
        return message

    return counted


def _with_headers(send: Send) -> Send:
    async def answer(message: Message) -> None:
        if message["type"] == "http.response.start":
            there = {name.lower() for name, _ in message["headers"]}
            message["headers"] = [
                *message["headers"],
                *((name, value) for name, value in HEADERS.items() if name not in there),
            ]
        await send(message)

    return answer
