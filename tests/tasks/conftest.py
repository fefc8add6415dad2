"""Fixtures of the tests of tasks."""

from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from pandera.typing.polars import DataFrame

from schemas.conclusions import JuryFindings
from schemas.curation import PerturbedAnswers
from schemas.results import Drifts, Estimates, Findings
from tasks.kit.catalogue import read_toml
from tasks.perturbations import Item
from tasks.report import ReportFacts, SavedVotes, report
from tasks.results import conclusions_of

CELL = {
    "dataset": "bloom",
    "judge": "acme/judge-1",
    "prompt": "pair_v1",
    "wave": "",
    "mode": "balanced",
    "perturbation": "fake_reference",
    "kind": "promote",
    "simulated": False,
}
SIZES = {
    "subgroup": "",
    "level": 0.95,
    "n": 58,
    "clusters": 57,
    "dropped": 3,
    "votes_per_pair": 2,
    "method": "cluster linearisation, t",
}
OVERALL: dict[str, Any] = {"perturbation": None, "kind": None, "mode": "any"}
FACTS = ReportFacts(
    study="quick",
    dataset="bloom",
    mode="balanced",
    votes_per_pair=2,
    seeds={"perturb": 41},
    run="run-77",
    code_version="abc1234",
    when="2026-01-02T03:04:05Z",
    warehouse="voirdire.duckdb",
    planned=1297,
    asked=1234,
    from_warehouse=56,
    failed=7,
    gaps="7 x Timeout",
    tokens=89012,
    cost_usd=None,
    prompts={"pair_v1": "d1gest"},
)
Row = dict[str, Any]


def estimates(*changes: Row, **everywhere: Any) -> DataFrame[Estimates]:
    cell = CELL | SIZES
    rows: list[Row] = [
        {"statistic": "mps_sham", "estimate": 0.1234, "low": 0.0712, "high": 0.1756},
        {"statistic": "asr", "estimate": 0.4711, "low": 0.3622, "high": 0.5833},
        {"statistic": "sham_floor", "estimate": 0.2344, "low": 0.1455, "high": 0.3266},
        {"statistic": "dasr", "estimate": 0.2367, "low": 0.1278, "high": 0.3456},
        {"statistic": "random_baseline", "estimate": 0.3333, "level": None},
        {
            "statistic": "position_consistency",
            "estimate": 0.8123,
            "low": 0.7,
            "high": 0.9,
            **OVERALL,
        },
        {
            "statistic": "preference_fairness",
            "estimate": -0.0678,
            "low": -0.1,
            "high": 0.0,
            **OVERALL,
        },
        {"statistic": "valid_rate", "estimate": 0.975, "hits": 195, "n": 200, **OVERALL},
        {"statistic": "missing_rate", "estimate": 0.025, "hits": 5, "n": 200, **OVERALL},
        *changes,
    ]
    frame = pl.DataFrame([cell | row | everywhere for row in rows], infer_schema_length=None)
    return Estimates.of(frame)


def findings(*changes: Row, **everywhere: Any) -> DataFrame[Findings]:
    cell = CELL | {
        "statistic": "mps_sham",
        "estimate": 0.1234,
        "low": 0.0712,
        "high": 0.1756,
        "minimum": 0.05,
        "p_value": 0.0123,
        "p_adjusted": 0.0246,
        "finding": "biased",
    }
    rows = [cell | change | everywhere for change in (changes or ({},))]
    return Findings.of(pl.DataFrame(rows, infer_schema_length=None))


def perturbed(**change: Any) -> DataFrame[PerturbedAnswers]:
    row = {
        "answer_id": "q/a2",
        "question_id": "q",
        "perturbation": "fake_reference",
        "recipe": 1,
        "seed": 0,
        "made_by": "template",
        "failure": "keeps 0.64 of the words, needs 0.70",
    }
    return PerturbedAnswers.of(pl.DataFrame([row | change]))


def concluded_report(
    facts: ReportFacts,
    estimates: DataFrame[Estimates],
    findings: DataFrame[Findings],
    perturbed: DataFrame[PerturbedAnswers],
    drifts: DataFrame[Drifts] | None = None,
    *,
    usd: float | None = None,
    **saved: Any,
) -> str:
    """Render the report of estimates and findings, concluded from as an audit does."""
    drifts = Drifts.empty() if drifts is None else drifts
    concluded = conclusions_of(estimates, findings, drifts, facts.thresholds)
    if usd is not None:
        jury = JuryFindings.of(concluded.jury_findings.with_columns(cost_usd=pl.lit(usd)))
        concluded = concluded._replace(jury_findings=jury)
    return report(facts, concluded, perturbed, lambda: SavedVotes(**saved))


class Page(HTMLParser):
    """Texts, tags and attributes as a browser would see them, and the scripts that it runs."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.data: list[str] = []
        """Contents of the script elements that are data."""
        self._within: list[str] | None = None
        self.feed(source)
        self.text = " ".join(" ".join(self.texts).split(" "))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag in {"script", "style"}:
            self._within = [] if tag == "style" else self.data if attrs else self.scripts
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        if tag in {"script", "style"}:
            self._within = None

    def handle_data(self, data: str) -> None:
        if self._within is None:
            self.texts += data.split()
        else:
            self._within.append(data)


@pytest.fixture(scope="session")
def parts() -> SimpleNamespace:
    """Return facts, makers of frames by their changes, and a reader of pages."""
    return SimpleNamespace(
        CELL=CELL,
        SIZES=SIZES,
        OVERALL=OVERALL,
        FACTS=FACTS,
        Page=Page,
        estimates=estimates,
        findings=findings,
        perturbed=perturbed,
        report=concluded_report,
    )


FOLDER = Path(__file__).parents[2] / "tasks" / "datasets" / "_bloom"


@pytest.fixture(scope="session")
def bundled() -> list[tuple[Item, dict[str, str]]]:
    """The bundled targets, each with the versions that it brings."""
    entries = [
        entry for path in sorted(FOLDER.glob("*.toml")) for entry in read_toml(path)["questions"]
    ]
    return [
        (
            Item(f"bloom/{entry['id']}/a2", entry["question"], entry["target"]),
            {
                "factual_error": _replaced(entry["target"], entry["errors"]),
                "gender_bias": _replaced(entry["target"], entry["bias"]),
            },
        )
        for entry in entries
    ]


def _replaced(text: str, pairs: list[list[str]]) -> str:
    for right, wrong in pairs:
        assert text.count(right) == 1
        text = text.replace(right, wrong)
    return text


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
                "sample": f"s{number:03}",
                "shown_first": side,
                "choice": choice,
                "cluster": cluster[number] if cluster else f"s{number:03}",
                **more,
            }
            for number, pair in enumerate(pairs)
            for side, choice in zip(("anchor", "target"), pair, strict=True)
        ]

    return make
