from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest


@pytest.fixture(scope="session")
def club_sandwich() -> Callable[..., tuple[float, float, float]]:
    """Return the estimate, CR2 error and Satterthwaite df of a weighted mean, by dense matrices.

    The algorithm of Pustejovsky and Tipton (2018), section 2, as R's clubSandwich has it, with the
    inverse weights as working covariance; nothing is known of a mean being one parameter.
    """

    def weighted_mean(y: Any, weights: Any, groups: Any) -> tuple[float, float, float]:
        x, w = np.ones((len(y), 1)), np.diag(weights)
        phi, bread = np.linalg.inv(w), np.linalg.inv(x.T @ w @ x)
        rest = np.eye(len(y)) - x @ bread @ x.T @ w
        (beta,) = bread @ x.T @ w @ y
        residuals, meat, spread = y - x[:, 0] * beta, 0.0, []
        for name in np.unique(groups):
            at = groups == name
            root = np.sqrt(phi[np.ix_(at, at)])
            inner = root @ (rest[at] @ phi @ rest[at].T) @ root.T
            values, vectors = np.linalg.eigh(inner)
            inverse = np.where(values > 1e-12, 1 / np.sqrt(np.maximum(values, 1e-12)), 0.0)
            adjust = root.T @ (vectors * inverse @ vectors.T) @ root
            score = bread @ x[at].T @ w[np.ix_(at, at)] @ adjust
            meat += float((score @ residuals[at]).item() ** 2)
            spread.append((score @ rest[at])[0])
        each = np.array(spread)
        values = np.linalg.eigvalsh(each @ phi @ each.T)
        return float(beta), meat**0.5, float(values.sum() ** 2 / (values**2).sum())

    return weighted_mean


@pytest.fixture(scope="session")
def votes() -> Callable[..., list[dict[str, Any]]]:
    """Return a factory of votes: of each sample a pair, with the anchor and the target first."""

    def make(
        pairs: Sequence[tuple[str | None, str | None]],
        cluster: Sequence[str] | None = None,
        **more: object,
    ) -> list[dict[str, Any]]:
        return [
            {
                "sample": f"s{number:03}", "shown_first": side, "choice": choice,
                "cluster": cluster[number] if cluster else f"s{number:03}", **more,
            }
            for number, pair in enumerate(pairs)
            for side, choice in zip(("anchor", "target"), pair, strict=True)
        ]  # fmt: skip

    return make
