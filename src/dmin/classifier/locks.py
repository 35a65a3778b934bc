"""One lock per object, kept outside of it, so that copies and pickles carry none."""

from __future__ import annotations

import os
import threading
from weakref import WeakKeyDictionary

_guard = threading.Lock()
_locks: WeakKeyDictionary[object, threading.RLock] = WeakKeyDictionary()


def lock_of(owner: object) -> threading.RLock:
    """The lock of one object: made when it is first asked for, gone with the object."""
    with _guard:
        return _locks.setdefault(owner, threading.RLock())


def _renew() -> None:
    """Forget all locks. In a forked child the threads that held them are gone and would never release them."""
    global _guard, _locks
    _guard, _locks = threading.Lock(), WeakKeyDictionary()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_renew)
