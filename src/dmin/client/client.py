"""The two clients: `Client` waits, `AsyncClient` is awaited; each method is one call of the API.

A request that failed on the way, or found the service busy, is sent again with the same Idempotency-Key.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import httpx

from dmin.client import calls
from dmin.client.calls import AGAIN, Call, T, seconds_to_wait
from dmin.errors import DminError, one_line
from dmin.server import schemas

DEFAULT = "default"  # the collection that `dmin serve --examples` fills


def _options(address: str, key: str | None, timeout: float) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return {"base_url": address, "headers": headers, "timeout": timeout, "trust_env": False}


def _unreachable(address: str, error: Exception) -> DminError:
    return DminError(f"the service at {address} does not answer: {one_line(error) or type(error).__name__}")


class Client:
    """A client that waits for each answer.

    Args:
        address: of the service, like "http://127.0.0.1:8765".
        key: a key that `dmin serve keys create` made, if the service needs one.
        retries: how often a request is sent again.
        timeout: seconds to wait for an answer.
    """

    def __init__(self, address: str, key: str | None = None, *, retries: int = 4, timeout: float = 60.0) -> None:
        self._address, self._retries = address, retries
        self._http = httpx.Client(**_options(address, key, timeout))

    def __enter__(self) -> Self:
        """The client itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _send(self, call: Call[T]) -> T:
        arguments = call.arguments()
        for attempt in range(self._retries + 1):
            response = None
            try:
                response = self._http.request(**arguments)
            except httpx.TransportError as error:
                if attempt == self._retries:
                    raise _unreachable(self._address, error) from error
            if response is not None and (response.status_code not in AGAIN or attempt == self._retries):
                return call.read(response)
            time.sleep(seconds_to_wait(response, attempt))
        raise AssertionError("the last attempt returns or raises")

    def classify(
        self, texts: Sequence[str], *, top_k: int = 3, explain: bool = False, collection: str = DEFAULT
    ) -> schemas.ClassifyAnswer:
        """Classify texts: one answer per text."""
        return self._send(calls.classify(collection, texts, top_k, explain))

    def collections(self) -> schemas.CollectionList:
        """All collections that the key may see."""
        return self._send(calls.collections())

    def create_collection(
        self, name: str, classes: Mapping[str, Sequence[str]] | None = None, description: str = ""
    ) -> schemas.Collection:
        """Make a collection, filled with `{label: [texts]}`."""
        return self._send(calls.create_collection(name, classes or {}, description))

    def delete_collection(self, collection: str) -> schemas.Changed:
        """Remove a collection; `undo` brings it back."""
        return self._send(calls.delete_collection(collection))

    def classes(self, *, collection: str = DEFAULT) -> schemas.ClassList:
        """The classes, with the number of their examples."""
        return self._send(calls.classes(collection))

    def get_class(self, label: str, *, collection: str = DEFAULT) -> schemas.LabelledClass:
        """A class with its examples."""
        return self._send(calls.get_class(collection, label))

    def put_class(
        self,
        label: str,
        examples: Sequence[str],
        *,
        description: str | None = None,
        revision: int | None = None,
        collection: str = DEFAULT,
    ) -> schemas.LabelledClass:
        """Put examples in the place of what a class has; `revision` refuses where it was changed since (412)."""
        return self._send(calls.put_class(collection, label, examples, description, revision))

    def delete_class(self, label: str, *, revision: int | None = None, collection: str = DEFAULT) -> schemas.Changed:
        """Remove a class."""
        return self._send(calls.delete_class(collection, label, revision))

    def add_examples(self, label: str, examples: Sequence[str], *, collection: str = DEFAULT) -> schemas.Changed:
        """Add examples to a class; it is made if it is not there."""
        return self._send(calls.add_examples(collection, label, examples))

    def undo(self, *, collection: str = DEFAULT) -> schemas.Changed:
        """Take back the last change."""
        return self._send(calls.undo(collection))

    def history(self, *, most: int = 50, collection: str = DEFAULT) -> schemas.History:
        """The last changes, newest first."""
        return self._send(calls.history(collection, most))

    def check(self, *, collection: str = DEFAULT) -> schemas.CheckAnswer:
        """What is wrong with the examples."""
        return self._send(calls.check(collection))

    def suggest(
        self, texts: Sequence[str], n: int = 20, *, seed: int = 0, collection: str = DEFAULT
    ) -> schemas.SuggestAnswer:
        """Which of these texts to label next."""
        return self._send(calls.suggest(collection, texts, n, seed))

    def evaluate(self, rows: Sequence[tuple[str, str]], *, collection: str = DEFAULT) -> schemas.EvaluateAnswer:
        """Accuracy on (text, label) rows."""
        return self._send(calls.evaluate(collection, rows))

    def import_file(
        self, content: bytes, content_type: str = "application/yaml", *, collection: str = DEFAULT
    ) -> schemas.Changed:
        """Add the examples of a file in one change."""
        return self._send(calls.import_file(collection, content, content_type))

    def model(self) -> schemas.ModelAnswer:
        """What classifies, and the limits of a request."""
        return self._send(calls.model())


class AsyncClient:
    """The same for asyncio: every method is awaited.

    Args:
        address: of the service, like "http://127.0.0.1:8765".
        key: a key that `dmin serve keys create` made, if the service needs one.
        retries: how often a request is sent again.
        timeout: seconds to wait for an answer.
    """

    def __init__(self, address: str, key: str | None = None, *, retries: int = 4, timeout: float = 60.0) -> None:
        self._address, self._retries = address, retries
        self._http = httpx.AsyncClient(**_options(address, key, timeout))

    async def __aenter__(self) -> Self:
        """The client itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _send(self, call: Call[T]) -> T:
        arguments = call.arguments()
        for attempt in range(self._retries + 1):
            response = None
            try:
                response = await self._http.request(**arguments)
            except httpx.TransportError as error:
                if attempt == self._retries:
                    raise _unreachable(self._address, error) from error
            if response is not None and (response.status_code not in AGAIN or attempt == self._retries):
                return call.read(response)
            await asyncio.sleep(seconds_to_wait(response, attempt))
        raise AssertionError("the last attempt returns or raises")

    async def classify(
        self, texts: Sequence[str], *, top_k: int = 3, explain: bool = False, collection: str = DEFAULT
    ) -> schemas.ClassifyAnswer:
        """Classify texts: one answer per text."""
        return await self._send(calls.classify(collection, texts, top_k, explain))

    async def collections(self) -> schemas.CollectionList:
        """All collections that the key may see."""
        return await self._send(calls.collections())

    async def create_collection(
        self, name: str, classes: Mapping[str, Sequence[str]] | None = None, description: str = ""
    ) -> schemas.Collection:
        """Make a collection, filled with `{label: [texts]}`."""
        return await self._send(calls.create_collection(name, classes or {}, description))

    async def delete_collection(self, collection: str) -> schemas.Changed:
        """Remove a collection; `undo` brings it back."""
        return await self._send(calls.delete_collection(collection))

    async def classes(self, *, collection: str = DEFAULT) -> schemas.ClassList:
        """The classes, with the number of their examples."""
        return await self._send(calls.classes(collection))

    async def get_class(self, label: str, *, collection: str = DEFAULT) -> schemas.LabelledClass:
        """A class with its examples."""
        return await self._send(calls.get_class(collection, label))

    async def put_class(
        self,
        label: str,
        examples: Sequence[str],
        *,
        description: str | None = None,
        revision: int | None = None,
        collection: str = DEFAULT,
    ) -> schemas.LabelledClass:
        """Put examples in the place of what a class has; `revision` refuses where it was changed since (412)."""
        return await self._send(calls.put_class(collection, label, examples, description, revision))

    async def delete_class(
        self, label: str, *, revision: int | None = None, collection: str = DEFAULT
    ) -> schemas.Changed:
        """Remove a class."""
        return await self._send(calls.delete_class(collection, label, revision))

    async def add_examples(self, label: str, examples: Sequence[str], *, collection: str = DEFAULT) -> schemas.Changed:
        """Add examples to a class; it is made if it is not there."""
        return await self._send(calls.add_examples(collection, label, examples))

    async def undo(self, *, collection: str = DEFAULT) -> schemas.Changed:
        """Take back the last change."""
        return await self._send(calls.undo(collection))

    async def history(self, *, most: int = 50, collection: str = DEFAULT) -> schemas.History:
        """The last changes, newest first."""
        return await self._send(calls.history(collection, most))

    async def check(self, *, collection: str = DEFAULT) -> schemas.CheckAnswer:
        """What is wrong with the examples."""
        return await self._send(calls.check(collection))

    async def suggest(
        self, texts: Sequence[str], n: int = 20, *, seed: int = 0, collection: str = DEFAULT
    ) -> schemas.SuggestAnswer:
        """Which of these texts to label next."""
        return await self._send(calls.suggest(collection, texts, n, seed))

    async def evaluate(self, rows: Sequence[tuple[str, str]], *, collection: str = DEFAULT) -> schemas.EvaluateAnswer:
        """Accuracy on (text, label) rows."""
        return await self._send(calls.evaluate(collection, rows))

    async def import_file(
        self, content: bytes, content_type: str = "application/yaml", *, collection: str = DEFAULT
    ) -> schemas.Changed:
        """Add the examples of a file in one change."""
        return await self._send(calls.import_file(collection, content, content_type))

    async def model(self) -> schemas.ModelAnswer:
        """What classifies, and the limits of a request."""
        return await self._send(calls.model())
