import hashlib
from fractions import Fraction
from statistics import NormalDist
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.kit import random_numbers
from tasks.kit.random_numbers import normal, pick, shuffle, uniform

KEYS = st.lists(st.text() | st.integers(), min_size=1)


def _all(byte: int) -> object:
    """Return a stand-in for hashlib whose every digest is made of one byte."""
    return SimpleNamespace(sha256=lambda _: SimpleNamespace(digest=lambda: bytes([byte]) * 32))


def test_the_number_is_the_middle_of_one_of_2_52_parts() -> None:
    # the digest by hand, in exact fractions
    first = int(hashlib.sha256(b"0\x1fvote\x1fd/1").hexdigest()[:13], 16)
    assert Fraction(uniform(0, "vote", "d/1")) == Fraction(2 * first + 1, 2**53)


@pytest.mark.parametrize("byte", [0, 255])
def test_neither_end_is_ever_reached(byte: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_numbers, "hashlib", _all(byte))
    assert 0 < uniform("any") < 1
    assert pick("abc", "any") == {0: "a", 255: "c"}[byte]
    # the normal quantiles of 2^-53 and 1 - 2^-53
    assert normal("any") == pytest.approx({0: -8.2095, 255: 8.2095}[byte], abs=1e-3)


@given(KEYS)
def test_equal_keys_give_equal_numbers(keys: list[object]) -> None:
    assert uniform(*keys) == uniform(*keys)
    assert 0 < uniform(*keys) < 1
    assert normal(*keys) == NormalDist().inv_cdf(uniform(*keys))


def test_numbers_do_not_depend_on_the_order_of_calls() -> None:
    forth = {key: uniform(1, key) for key in range(50)}
    back = {key: uniform(1, key) for key in reversed(range(50))}
    assert forth == back
    assert len(set(forth.values())) == 50


def test_keys_do_not_run_together() -> None:
    assert uniform("ab", "c") != uniform("a", "bc")
    assert uniform("a") != uniform("a", "")
    assert uniform("a", "b") != uniform("b", "a")


def test_numbers_are_spread_evenly() -> None:
    counts = [0] * 10
    for key in range(10_000):
        counts[int(uniform("spread", key) * 10)] += 1
    # chi-square of 10 equal classes: the 99.9 % quantile at 9 degrees of freedom is 27.88
    assert sum((count - 1000) ** 2 / 1000 for count in counts) < 27.88


def test_normal_numbers_have_mean_0_and_deviation_1() -> None:
    numbers = [normal("bell", key) for key in range(10_000)]
    mean = sum(numbers) / len(numbers)
    variance = sum((number - mean) ** 2 for number in numbers) / len(numbers)
    # four standard errors: 4 / sqrt(n) of the mean, 4 sqrt(2 / n) of the variance
    assert mean == pytest.approx(0, abs=0.04)
    assert variance == pytest.approx(1, abs=0.0566)


@given(st.lists(st.integers(), min_size=1), KEYS)
def test_a_shuffle_keeps_all_and_a_pick_is_one_of_them(
    options: list[int], keys: list[object]
) -> None:
    shuffled = shuffle(options, *keys)
    assert sorted(shuffled) == sorted(options)
    assert shuffled == shuffle(options, *keys)
    assert pick(options, *keys) in options


def test_every_order_is_drawn() -> None:
    counts: dict[str, int] = {}
    for key in range(3000):
        order = "".join(shuffle("abc", key))
        counts[order] = counts.get(order, 0) + 1
    # chi-square of 6 equal classes: the 99.9 % quantile at 5 degrees of freedom is 20.52
    assert len(counts) == 6
    assert sum((count - 500) ** 2 / 500 for count in counts.values()) < 20.52


def test_lone_surrogates_are_keys_too() -> None:
    assert uniform("\ud800") != uniform("\udfff")
