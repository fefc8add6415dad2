"""The bundled study decides, and says what is planted; asked without a server."""

from typing import Any

import polars as pl
import pytest

from flows.studies import STUDIES
from schemas.curation import PerturbedAnswers
from schemas.judging import VoteLog
from schemas.results import FINDINGS, Estimates
from tasks._parser import parse
from tasks.aggregate import count_votes, match_groups, tally_votes
from tasks.conclude import conclude
from tasks.curate import import_dataset
from tasks.pair import pair_up
from tasks.perturb import perturb, perturbation_table
from tasks.prompts import PROMPTS
from tasks.providers import JUDGES
from tasks.providers._offline import Traits, answer
from tasks.statistics import STATISTICS
from tasks.statistics._bootstrap import formulas_only

READ = ("mps", "mps_sham", "sham_shift", "los", "detection_power", "dasr", "unanimous_rate")
PROMOTE, DETRACT = ("fake_reference", "rich_content"), ("factual_error", "gender_bias")
PLANTED = {
    "fair": {**dict.fromkeys(PROMOTE, "no relevant bias"), **dict.fromkeys(DETRACT, "detects")},
    "leaning": {**dict.fromkeys(PROMOTE, "no relevant bias"), **dict.fromkeys(DETRACT, "detects")},
    "dazzled": {
        **dict.fromkeys(PROMOTE, "biased"), "factual_error": "overlooks", "gender_bias": "rewards"
    },
    # What it makes of references and markup cancels out over the questions.
    "hasty": {**dict.fromkeys(PROMOTE, "mixed"), **dict.fromkeys(DETRACT, "detects some")},
    # It has no taste for references and markup, but the sham itself moves it.
    "fussy": {**dict.fromkeys(PROMOTE, "inconclusive"), **dict.fromkeys(DETRACT, "detects")},
}  # fmt: skip


@pytest.fixture(scope="module")
def words() -> dict[tuple[str, str], str]:
    study = STUDIES["quick"].study
    frames = import_dataset(study.dataset, study.folder, study.limit)
    names = study.asked()
    perturbed = PerturbedAnswers.of(pl.concat(perturb(*frames, name, study.seed) for name in names))
    table = perturbation_table(names)
    pairs = pair_up(frames[0], frames[1], perturbed, table, study.checks).to_dicts()
    log = [row for judge in study.judges for pair in pairs for row in _votes(judge, pair)]
    tallies = count_votes(VoteLog.of(pl.DataFrame(log, infer_schema_length=None)))
    given = {"tallies": tallies, "shifts": match_groups(tally_votes(tallies, study.mode))}
    with formulas_only():
        estimates = [STATISTICS[name](**given) for name in READ]
    # *mixed* rests on draws.
    estimates.append(STATISTICS["heterogeneity"](**given))
    found = conclude(Estimates.of(pl.concat(estimates)))
    cells = found.select(pl.col("judge").str.strip_prefix("offline/"), "perturbation", "finding")
    return {(judge, perturbation): word for judge, perturbation, word in cells.iter_rows()}


def _votes(judge: str, pair: dict[str, Any]) -> list[dict[str, Any]]:
    prompt, traits = (
        PROMPTS[STUDIES["quick"].study.prompt],
        Traits(**JUDGES[judge].params["traits"]),
    )
    both = {"anchor": (pair["anchor"], pair["target"]), "target": (pair["target"], pair["anchor"])}
    told = {name: pair[name] for name in ("sample", "cluster", "arm", "perturbation", "kind")}
    return [
        {
            **told, "dataset": "bloom", "judge": judge, "prompt": "p", "wave": "", "repeat": 0,
            "shown_first": side, "simulated": True, "cached": False,
            "choice": parse(answer(prompt.messages(pair["question"], *texts), traits, 0)),
        }
        for side, texts in both.items()
    ]  # fmt: skip


def test_what_is_planted_comes_back(words: dict[tuple[str, str], str]) -> None:
    expected = {(judge, name): word for judge, own in PLANTED.items() for name, word in own.items()}
    assert words == expected


def test_most_cells_are_decided_and_every_word_occurs(words: dict[tuple[str, str], str]) -> None:
    assert sum(word != "inconclusive" for word in words.values()) >= 16
    assert set(words.values()) == set(FINDINGS)
