import hashlib
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.keys import content_key

PARTS = st.lists(st.text() | st.integers() | st.none() | st.booleans() | st.lists(st.text()))


def test_a_key_is_half_of_a_sha256_over_json() -> None:
    # by another road: the JSON written out by hand
    expected = hashlib.sha256(b'["a","\\u00e9",1,null]').hexdigest()[:32]
    assert content_key("a", "é", 1, None) == expected


def test_parts_do_not_run_together() -> None:
    alike: list[tuple[object, ...]] = [
        ("ab", "c"),
        ("a", "bc"),
        ("abc",),
        ("abc", ""),
        ("", "abc"),
        ('a","bc',),
        ("ab,c",),
        (["a", "bc"],),
        (["a"], "bc"),
        ("1",),
        (1,),
        (1.0,),
        (True,),
        ("true",),
        (None,),
        ("null",),
        ("",),
        (),
        ([],),
        ({},),
        ("a\x1fb",),
        ("a", "b"),
        ("é",),
        ("e\u0301",),
        ("\\u00e9",),
    ]
    for one, other in combinations(alike, 2):
        assert content_key(*one) != content_key(*other), (one, other)


@given(PARTS, PARTS)
def test_keys_are_equal_for_equal_parts_only(one: list[object], other: list[object]) -> None:
    # repr tells 1 from True, which == does not
    assert (content_key(*one) == content_key(*other)) == (repr(one) == repr(other))


def test_the_order_of_a_table_does_not_count() -> None:
    assert content_key({"a": 1, "b": 2}) == content_key({"b": 2, "a": 1})


def test_lone_surrogates_have_a_key() -> None:
    assert content_key("\ud800") != content_key("\udfff")


def test_what_json_cannot_write_is_refused() -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        content_key(object())
