"""A mapping that grows as a dict does, and whose earlier states stay as they were."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from dmin.classifier import layered
from dmin.classifier.layered import Layered

STEPS = st.lists(st.dictionaries(st.integers(0, 30), st.text(max_size=2), max_size=5), max_size=12)


@given(st.dictionaries(st.integers(0, 30), st.text(max_size=2)), STEPS)
def test_it_is_a_dict_in_which_what_was_there_stays(base: dict[int, str], steps: list[dict[int, str]]) -> None:
    found, expected, earlier = Layered(base), dict(base), []
    for more in steps:
        earlier.append((found, dict(expected)))
        found, expected = found.extended(more), {**more, **expected}
    assert dict(found) == expected and len(found) == len(expected)
    assert all(key in found and found[key] == value and found.get(key) == value for key, value in expected.items())
    assert -1 not in found and found.get(-1) is None
    assert all(dict(state) == then for state, then in earlier)
    assert dict(pickle.loads(pickle.dumps(found))) == expected  # noqa: S301 (our own)


def test_the_base_is_shared_until_much_was_added() -> None:
    base = dict.fromkeys(range(10000), "")
    one = Layered(base).extended({-1: "x"})
    assert one._base is base and len(one) == 10_001
    many = one.extended({-2 - number: "" for number in range(layered.MOST_RECENT)})
    assert many._base is not base and not many._recent and len(many) == 11_001
