"""Metrics of mean similarity between labels, built in or a user's function (PATH:FUNCTION)."""

import importlib.util
import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tasks.calibration.label_values import Codes, Floats, ListLabel, Panel, neighbours
from tasks.metrics import METRICS, Gaps, Metric

Similarity = Callable[[Codes, Codes], Floats]
"""Function of the codes of judged labels, and of the labels that they are compared with."""

TOLERANCE = 1e-9
"""Means this close count as tied: their order would depend on the order of summation."""


def mean_similarity(panel: Panel, similarity: Similarity) -> Callable[[Codes], Floats]:
    """Return a function that compares mean ``similarity`` with the labels of all others."""
    own = np.empty(panel.code.size)
    for rows, place, other in neighbours(panel):
        codes = panel.code[rows]
        each = similarity(codes[place], panel.code[other]) * panel.count[other]
        itself = similarity(codes, codes)
        own[rows] = np.bincount(place, each, minlength=codes.size) - itself

    def gaps(codes: Codes) -> Floats:
        each = similarity(codes[panel.item], panel.code)
        gap = (panel.sums(each)[panel.item] - each - own) / panel.others
        return np.where(np.abs(gap) <= TOLERANCE, 0.0, gap)

    return gaps


KEPT = 1 << 20
"""Most pairs whose similarity is cached."""


def find_metric(name: str) -> Metric:
    """Return the metric with that name, or one from a function in a file, ``PATH:FUNCTION``."""
    path, colon, function = name.rpartition(":")
    return from_function(_load(Path(path), function), name) if colon else METRICS[name]


def from_function(function: Callable[[Any, Any], float], name: str) -> Metric:
    """Make a metric: the mean of ``function(label, other)``, from 0 to 1, over others' labels."""

    def prepare(panel: Panel) -> Gaps:
        labels = [_label(value) for value in panel.values]

        @lru_cache(maxsize=KEPT)
        def score(a: int, b: int) -> float:
            return _call(function, name, labels[a], labels[b])

        def similarity(a: Codes, b: Codes) -> Floats:
            wide = len(labels)
            pairs, place = np.unique(a * wide + b, return_inverse=True)
            scores = np.array([score(int(p) // wide, int(p) % wide) for p in pairs], np.float64)
            each: Floats = scores[place]
            return each

        return mean_similarity(panel, similarity)

    return Metric(name, "any", name, prepare, (function.__doc__ or "").strip().split("\n")[0])


def _label(value: Any) -> Any:
    """Return lists as lists; texts stay unchanged, even if they look like lists."""
    return json.loads(value.json) if isinstance(value, ListLabel) else value


def _call(function: Callable[[Any, Any], float], name: str, a: Any, b: Any) -> float:
    try:
        score = float(function(a, b))
    except Exception as error:
        raise ValueError(
            f"{name} fails on {a!r:.60} and {b!r:.60}: {error!r}. Correct it; it must return a "
            "number from 0 to 1 for each pair of labels."
        ) from error
    if not 0 <= score <= 1:
        raise ValueError(
            f"{name} returns {score} for {a!r:.60} and {b!r:.60}; it must return a number from 0 "
            "to 1."
        )
    return score


def _load(path: Path, name: str) -> Callable[[Any, Any], float]:
    """Run the user's file and return its function."""
    if not path.is_file():
        raise ValueError(
            f"{path} is not a file. Name a metric ({', '.join(METRICS)}), or a function of a "
            "Python file as PATH:FUNCTION."
        )
    spec = importlib.util.spec_from_file_location(f"metric_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is not a Python file. Its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(
            f"{path} cannot be imported: {error!r}. Correct the file, or name a metric "
            f"({', '.join(METRICS)})."
        ) from error
    function = getattr(module, name, None)
    if not callable(function):
        raise LookupError(  # noqa: TRY004
            f"{path} defines no function {name!r}. Correct the name after the colon."
        )
    found: Callable[[Any, Any], float] = function
    return found
