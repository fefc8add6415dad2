import html
import re
from html.parser import HTMLParser
from typing import Any

import polars as pl
import pytest
from pandera.typing.polars import DataFrame

from schemas.curation import PerturbedAnswers
from schemas.results import Drifts, Estimates, Findings
from tasks.conclude import conclude
from tasks.report import ReportFacts, report

BANNER = "Simulated judges: formulas with planted biases, not language models"
MINUS, GAP = "\N{MINUS SIGN}", "\N{NO-BREAK SPACE}"
CELL = {
    "dataset": "bloom", "judge": "acme/judge-1", "prompt": "pair_v1", "wave": "",
    "mode": "balanced", "perturbation": "fake_reference", "kind": "promote", "simulated": False,
}  # fmt: skip
SIZES = {
    "subgroup": "", "level": 0.95, "n": 58, "clusters": 57, "dropped": 3, "votes_per_pair": 2,
    "method": "cluster linearisation, t",
}  # fmt: skip
OVERALL: dict[str, Any] = {"perturbation": None, "kind": None, "mode": "any"}
FACTS = ReportFacts(
    study="quick", dataset="bloom", mode="balanced", votes_per_pair=2, seeds={"perturb": 41},
    run="run-77", code_version="abc1234", when="2026-01-02T03:04:05Z", warehouse="voirdire.duckdb",
    planned=1297, asked=1234, from_warehouse=56, failed=7, gaps="7 x Timeout", tokens=89012,
    cost_usd=None, prompts={"pair_v1": "d1gest"},
)  # fmt: skip
HOSTILE = ["<script>alert(1)</script>", r"$\frac{", "\U0001f600" * 9, "x" * 200, "{{7*7}}"]

Row = dict[str, Any]


def estimates(*changes: Row, **everywhere: Any) -> DataFrame[Estimates]:
    cell = CELL | SIZES
    rows: list[Row] = [
        {"statistic": "mps_sham", "estimate": 0.1234, "low": 0.0712, "high": 0.1756},
        {"statistic": "asr", "estimate": 0.4711, "low": 0.3622, "high": 0.5833},
        {"statistic": "sham_floor", "estimate": 0.2344, "low": 0.1455, "high": 0.3266},
        {"statistic": "dasr", "estimate": 0.2367, "low": 0.1278, "high": 0.3456},
        {"statistic": "random_baseline", "estimate": 0.3333, "level": None},
        {"statistic": "position_consistency", "estimate": 0.8123, "low": 0.7, "high": 0.9,
         **OVERALL},
        {"statistic": "preference_fairness", "estimate": -0.0678, "low": -0.1, "high": 0.0,
         **OVERALL},
        {"statistic": "valid_rate", "estimate": 0.975, "hits": 195, "n": 200, **OVERALL},
        {"statistic": "missing_rate", "estimate": 0.025, "hits": 5, "n": 200, **OVERALL},
        *changes,
    ]  # fmt: skip
    frame = pl.DataFrame([cell | row | everywhere for row in rows], infer_schema_length=None)
    return Estimates.of(frame)


def findings(*changes: Row, **everywhere: Any) -> DataFrame[Findings]:
    cell = CELL | {
        "statistic": "mps_sham", "estimate": 0.1234, "low": 0.0712, "high": 0.1756,
        "minimum": 0.05, "p_value": 0.0123, "p_adjusted": 0.0246, "finding": "biased",
    }  # fmt: skip
    rows = [cell | change | everywhere for change in (changes or ({},))]
    return Findings.of(pl.DataFrame(rows, infer_schema_length=None))


def perturbed(**change: Any) -> DataFrame[PerturbedAnswers]:
    row = {
        "answer_id": "q/a2", "question_id": "q", "perturbation": "fake_reference", "recipe": 1,
        "seed": 0, "made_by": "template", "failure": "keeps 0.64 of the words, needs 0.70",
    }  # fmt: skip
    return PerturbedAnswers.of(pl.DataFrame([row | change]))


class Page(HTMLParser):
    """Texts, tags and attributes as a browser would see them."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.feed(source)
        self.text = " ".join(" ".join(self.texts).split(" "))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.texts += data.split()


@pytest.fixture(scope="module")
def source() -> str:
    return report(FACTS, estimates(), findings(), perturbed())


@pytest.mark.parametrize(
    "text",
    [
        ".123", f"[.071,{GAP}.176]",  # MPS, three digits in the table of results
        ".47", f"[.36,{GAP}.58]", ".23", f"[.15,{GAP}.33]", ".24", f"[.13,{GAP}.35]", ".33",
        ".81", ".025", "raw .012", "57", "58 samples, 3 without verdict",
        ".471", f"[.362,{GAP}.583]", ".234", ".237", ".333", ".812", f"{MINUS}.068",  # all numbers
        "200", "195", ".97", "5",
    ],
)  # fmt: skip
def test_every_number_appears(source: str, text: str) -> None:
    shown = re.sub(r"[^\S\xa0]+", " ", re.sub(r"<svg.*?</svg>", "", source, flags=re.DOTALL))
    assert re.search(rf"(?:>|\s){re.escape(text)}(?:<|\s|,)", html.unescape(shown))


@pytest.mark.parametrize(
    "text",
    [
        "biased<small>toward it</small>", "keeps 0.64 of the words, needs 0.70", "perturb 41",
        "run-77",
        "abc1234", "voirdire.duckdb", "1\u202f234", "89\u202f012", "pair_v1 (d1gest)", "not known",
        "2026-01-02T03:04:05Z", "Benjamini-Hochberg over 1 cell with a p-value",
        "a good judge moves away from the target",
    ],
)  # fmt: skip
def test_what_the_numbers_rest_on_appears(source: str, text: str) -> None:
    assert text in html.unescape(" ".join(re.split(r"[ \n]+", source)))


def test_every_number_has_a_second_line_and_people_and_probes_are_told() -> None:
    rests: dict[str, Any] = {
        "p_adjusted": 0.0171,
        "design": "balanced",
        "epoch": 3,
        "seed": 20240612,
    }
    numbers = estimates().with_columns(**{name: pl.lit(value) for name, value in rests.items()})
    numbers = pl.concat([numbers, numbers.with_columns(mode=pl.lit("paper"), epoch=pl.lit(77))])
    facts = FACTS._replace(
        people="2 people, 9 votes; left out: 1 too fast (below 3 s), 2 not familiar.",
        probed="offline/x answered alike in 100 of 100 probes: one vote per order was asked.",
    )
    shown = Page(report(facts, estimates(), findings(), perturbed(), numbers=numbers)).text
    assert "balanced orders; epoch 3; seed 20240612" in shown
    assert ".017" in shown
    assert "epoch 77" not in shown
    assert facts.people in shown
    assert facts.probed in shown


def test_three_charts_are_drawn_in_order(source: str) -> None:
    keys = re.findall(r'<svg[^>]*aria-label="([^"]+)"', source)
    assert [key.split(" ")[0] for key in keys] == ["Mean", "Attack", "Position"]


def test_sections_stand_in_order(source: str) -> None:
    assert re.findall(r"<h2>(.*?)</h2>", source) == [
        "Results",
        "How far each perturbation moves each judge",
        "Attack success beside its floor",
        "Does the place of an answer decide?",
        "Scorecard",
        "What became of the ballots",
        "Dropped items",
        "How to read the words",
        "Design and provenance",
    ]


def test_no_rate_is_a_percentage(source: str) -> None:
    shown = " ".join(Page(re.sub(r"<style>.*?</style>", "", source, flags=re.DOTALL)).texts)
    assert set(re.findall(r"(\d+) ?%", shown)) <= {"95", "90"}  # levels of intervals


def test_nothing_is_loaded_from_elsewhere(source: str) -> None:
    page = Page(source)
    loading = [v for n, v in page.attributes if n in {"src", "href", "xlink:href", "srcset"}]
    assert all(value.startswith("#") for value in loading)
    assert not re.search(r"url\((?!#)|@import|@font-face", source)
    assert not {"script", "link", "img", "iframe", "object", "base"} & set(page.tags)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_text(name: str) -> None:
    facts = FACTS._replace(study=name, dataset=name, run=name, warehouse=name, prompts={name: name})
    change = {"judge": name, "prompt": name, "dataset": name}
    page = report(
        facts,
        estimates(**change),
        findings(perturbation=name, **change),
        perturbed(perturbation=name, failure=name),
    )
    seen = Page(page)
    assert name in " ".join(seen.texts)
    assert "script" not in seen.tags
    assert "alert(1)" not in " ".join(value for n, value in seen.attributes if n.startswith("on"))
    assert "49" not in seen.texts


def test_unseen_characters_are_shown_as_lost() -> None:
    page = report(FACTS._replace(study="a\u202eb\x00c"), estimates(), findings(), perturbed())
    assert "\u202e" not in page
    assert "\x00" not in page
    assert "a\ufffdb\ufffdc" in page


def test_a_null_has_its_reason() -> None:
    null = {"estimate": None, "low": None, "high": None, "level": None, "reason": "nobody came"}
    page = report(
        FACTS,
        estimates(**null),
        findings(estimate=None, low=None, high=None, p_value=None, p_adjusted=None,
                 finding=None, reason="nobody came"),
        perturbed(),
    )  # fmt: skip
    text = " ".join(Page(page).texts)
    # A row of results gives its reason once; ballots; adjustments; all numbers
    assert text.count("not estimable (nobody came)") == 2 + 1 + 9
    assert "1 of 1 cell remains open (1 refused: nobody came)." in text
    assert "no finding nobody came" in text


@pytest.mark.parametrize(("simulated", "shown"), [(True, True), (False, False), (None, False)])
def test_the_banner_stands_where_a_judge_is_simulated(simulated: bool | None, shown: bool) -> None:
    page = report(FACTS, estimates(simulated=simulated), findings(simulated=simulated), perturbed())
    assert (BANNER in page) is shown
    assert ("(simulated)" in page) is shown


def test_the_banner_names_the_formulas_where_others_are_real() -> None:
    toy = {"judge": "toy", "simulated": True, "statistic": "asr", "estimate": 0.5}
    person = {**toy, "judge": "people/ann", "simulated": None}
    page = Page(report(FACTS, estimates(toy, person), findings(), perturbed())).text
    assert "1 of 2 judges is simulated, a formula with planted biases" in page
    assert "not a language model: toy" in page
    assert BANNER not in page


@pytest.mark.parametrize(
    ("rows", "floor", "sizes"),
    [
        (["mps_sham", "asr", "sham_floor"], "the sham: a meaning-free edit", "up to 57, up to 58"),
        (["mps_sham", "asr", "sham_floor", "replicate_floor"], "; control asked again", "up to 57"),
        (["mps_sham", "asr"], "none: no arm tells what noise alone does", "up to 57, up to 58"),
        (["position_consistency"], "none: nothing was perturbed", "control alone: up to 57, up to"),
        (["tie_rate"], "none: nothing was perturbed", None),
    ],
)  # fmt: skip
def test_floors_and_sizes_are_those_of_the_study(
    rows: list[str], floor: str, sizes: str | None
) -> None:
    more = [{"statistic": name, "estimate": 0.1} for name in ("replicate_floor", "tie_rate")]
    found = Estimates.of(estimates(*more).filter(pl.col("statistic").is_in(rows)))
    none = Findings.of(findings().clear())
    told = Page(report(FACTS, found, findings() if "asr" in rows else none, perturbed())).text
    after = told.partition("votes per pair 2 ")[2]
    assert floor in after
    assert ("questions, samples" in after) is bool(sizes)
    assert (sizes or "") in after


def test_a_perturbation_without_a_sham_is_named_beside_the_floor() -> None:
    bare = {"statistic": "asr", "estimate": 0.1, "perturbation": "padding"}
    told = Page(report(FACTS, estimates(bare), findings(), perturbed())).text
    assert "of the same answers (none for padding)" in told


@pytest.mark.parametrize("why", HOSTILE)
def test_gaps_are_told_at_the_top_with_their_reasons(why: str) -> None:
    facts = FACTS._replace(failed=7, planned=1297, gaps=f"7 x {why}")
    page = report(facts, estimates(), findings(), perturbed())
    told = page.index(
        "Completed with gaps: 7 of 1\N{NARROW NO-BREAK SPACE}297 ballots got no reply"
    )
    assert told < page.index('class="lead"')
    assert html.escape(f"Why: 7 x {why}.", quote=False) in page
    assert "<script" not in page
    whole = report(facts._replace(failed=0), estimates(), findings(), perturbed())
    assert "Completed with gaps" not in whole


def test_equal_facts_give_equal_bytes(source: str) -> None:
    assert report(FACTS, estimates(), findings(), perturbed()) == source


def test_rows_of_another_mode_are_left_out() -> None:
    page = report(FACTS._replace(mode="paper"), estimates(), findings(), perturbed())
    assert "No cell was measured" in page
    assert ".812" in page  # votes, not verdicts: position consistency has no mode


def test_a_study_without_anything_gives_a_page() -> None:
    page = report(FACTS, Estimates.empty(), Findings.empty(), PerturbedAnswers.empty())
    assert "No cell was measured, so nothing was found." in page
    assert "No answer was perturbed." in page


def test_a_file_does_not_tell_what_was_dropped() -> None:
    facts = FACTS._replace(from_file=True)
    page = report(facts, estimates(), findings(), PerturbedAnswers.empty())
    assert "do not tell what was dropped before anyone was asked" in page
    assert "No answer was perturbed." not in page
    assert "Every perturbed answer is checked" not in page
    assert "from a file, which tells neither calls nor tokens nor cost" in page
    assert "served from the warehouse" not in page


def test_a_known_cost_is_written() -> None:
    page = report(FACTS._replace(cost_usd=1.5), estimates(), findings(), perturbed())
    assert "1.50 USD" in page


def test_models_have_a_section_only_where_they_are_known() -> None:
    title = "What the verdicts say about models"
    assert title not in report(FACTS, estimates(), findings(), perturbed())
    pair = {**OVERALL, "subgroup": "ant vs bee"}
    found = estimates(
        {**pair, "statistic": "win_rate", "estimate": 0.56, "low": 0.52, "high": 0.6},
        {**pair, "statistic": "ppi_win_rate", "estimate": None, "reason": "<b>few</b>"},
        {**pair, "statistic": "bias_bound", "perturbation": "padding", "estimate": 0.0714},
        {**pair, "statistic": "tipping_shift", "perturbation": "padding", "estimate": 0.12},
        {**pair, "statistic": "bias_bound", "perturbation": "rich", "estimate": 0.05},
        {**pair, "statistic": "tipping_shift", "perturbation": "rich", "estimate": 0.3},
    )
    page = report(FACTS, found, findings(), perturbed())
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", "", page)).split())
    assert title in text
    assert "ant vs bee" in text
    assert "conclusion not robust to padding (a shift of .12 reverses it)" in text
    assert "not estimable(<b>few</b>)" in text
    assert "rich (a shift" not in text
    assert " none conclusion not robust" in " ".join(Page(page).text.split())


def test_an_asr_stands_beside_what_the_lost_samples_hide() -> None:
    # 27 of 57 that are left, 3 lost: 27/60 and 30/60.
    bounds = {"statistic": "asr_bounds", "estimate": 27 / 57, "low": 0.45, "high": 0.5, "n": 60}
    page = Page(report(FACTS, estimates(bounds), findings(), perturbed()))
    assert ".47 [.36, .58]; 3 lost: .45 to .50" in page.text
    whole = estimates({**bounds, "low": 0.45, "high": 0.45})
    assert "lost:" not in Page(report(FACTS, whole, findings(), perturbed())).text


@pytest.mark.parametrize(("usd", "told"), [(0.0123, "costs 0.012 USD"), (None, ""), (0.0, "")])
def test_the_jury_has_its_price_beside_it(usd: float | None, told: str) -> None:
    rows = [
        {"judge": judge, "statistic": name, "estimate": 0.1, "low": 0.0, "high": 0.2}
        for judge, name in (
            ("a", "mps_sham"), ("b", "mps_sham"), ("c", "mps_sham"), ("jury/all", "jury_mps_sham"),
            ("jury/all", "jury_mps"),
        )
    ]  # fmt: skip
    facts = FACTS._replace(jury_usd=usd)
    page = Page(report(facts, estimates(*rows), findings(), perturbed())).text
    assert "What the judges are as one jury" in page
    assert ("A verdict of the whole jury" in page) == bool(told)
    assert told in page


def test_judges_that_differ_have_a_table_of_their_own() -> None:
    title = "Which judges differ"
    assert title not in report(FACTS, estimates(), findings(), perturbed())
    pair = {"judge": "ada", "subgroup": "<i>bea"}
    page = report(
        FACTS,
        estimates({**pair, "statistic": "mps_sham_contrast", "estimate": -0.2, "low": -0.3,
                   "high": -0.1, "p_value": 0.0004, "standard_error": 0.05}),
        findings(), perturbed(),
    )  # fmt: skip
    assert title in page
    assert "1 of 1 pair told apart, 0 without a relevant difference" in Page(page).text
    assert "<i>bea is moved further toward the target" in Page(page).text
    assert "<i>bea" not in page


GAP_OF_BEA: list[Row] = [
    {"statistic": name, "estimate": estimate, "low": low, "high": low + 0.1, "judge": judge,
     **OVERALL}
    for judge, name, estimate, low in (
        ("acme/judge-1", "position_gap", 0.01, -0.04), ("acme/judge-1", "tie_rate", 0.1, 0.05),
        ("acme/judge-1", "invalid_rate", 0.01, 0.0), ("bea", "position_gap", -0.31, -0.36),
        ("bea", "tie_rate", 0.1, 0.05),
    )
]  # fmt: skip


def test_who_is_left_out_is_listed_and_both_results_are_given() -> None:
    shifts = [
        {"judge": judge, "statistic": "mps_sham", "estimate": shift, "low": shift - 0.04,
         "high": shift + 0.04, "standard_error": 0.02, "p_value": p}
        for judge, shift, p in (("bea", 0.3, 0.0001), ("acme/judge-1", 0.1, 0.04))
    ]  # fmt: skip
    means = [
        {"judge": "judges/all", "statistic": name, "subgroup": subgroup, "estimate": estimate,
         "low": estimate - 0.02, "high": estimate + 0.02}
        for name, subgroup, estimate in (
            ("mean_shift", "", 0.2), ("mean_asr", "", 0.7), ("mean_asr", "kept", 0.47)
        )
    ]  # fmt: skip
    rows = [
        *GAP_OF_BEA, *shifts, *means, {"judge": "bea", "statistic": "asr", "estimate": 0.9311},
    ]  # fmt: skip
    own = estimates().filter(pl.col("statistic") != "mps_sham").to_dicts()
    frame = Estimates.of(
        pl.DataFrame([*own, *(CELL | SIZES | row for row in rows)], infer_schema_length=None)
    )
    page = Page(report(FACTS, frame, conclude(frame), perturbed()))
    for text in (
        "position gap .15, tie rate .80 and invalid rate .10",
        f"Left out: bea: position gap {MINUS}.31 [{MINUS}.36, {MINUS}.26], beyond",
        f"{MINUS}.26], beyond \N{PLUS-MINUS SIGN}.15.",
        f"left out: position gap {MINUS}.31 [{MINUS}.36,",
        "Mean of 2 judges .200 [.180, .220] .70",
        "Mean of 1 judge, without the 1 left out none .47 [.45,",
        # Of two cells and of one, Benjamini-Hochberg leaves the largest as it is: nothing to add
        "raw .040",
    ):
        assert text in page.text, text
    assert ("class", "out") in page.attributes
    assert "; kept" not in page.text


def test_nobody_left_out_is_said_too(source: str) -> None:
    page = Page(report(FACTS, estimates(*GAP_OF_BEA[:3]), findings(), perturbed()))
    assert "Nobody is left out." in page.text
    assert "Mean of" not in page.text
    assert "Nobody is left out." not in source  # of what was not measured nobody can be


def test_charts_of_what_is_not_there_are_left_out_and_of_waves_are_drawn(source: str) -> None:
    from tasks.charts import CHARTS

    waves = [{"wave": "n1"}, {"wave": "n2", "state": "suspect", "estimate": 0.3}]
    row = {
        **CELL, "measure": "mps_drift", "epoch": 1, "base": "n0", "estimate": 0.0, "level": 0.011,
        "minimum": 0.05, "n": 58, "clusters": 57, "state": "quiet", "low": -0.01, "high": 0.02,
        "p_value": 0.4,
    }  # fmt: skip
    drifts = Drifts.of(pl.DataFrame([row | wave for wave in waves]))
    title = CHARTS["drift_strip"].title
    page = report(FACTS, estimates(wave="n2"), findings(wave="n2"), perturbed(), drifts)
    assert title not in source
    assert title in page
    told = Page(page).text
    assert "suspect" in told
    assert f"inconclusive [{MINUS}.01, .02]" in told  # its gate, of the last wave alone
