import base64
import hashlib
import html
import json
import re
from typing import Any

import polars as pl
import pytest

from schemas.curation import PerturbedAnswers
from schemas.results import Estimates, Findings
from tasks.reporting.summary import not_recognised

pytestmark = pytest.mark.usefixtures("drawn_once")
BANNER = "All judges are simulated, with planted biases; they are not language models"
MINUS = "\N{MINUS SIGN}"
GAP = "\N{NO-BREAK SPACE}"
SCRIPTS = re.compile(r"<script>.*?</script>", re.DOTALL)
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "<script>alert(1)</script>",
    r"$\frac{",
    "\U0001f600" * 9,
    "x" * 200,
    "{{7*7}}",
]


@pytest.fixture(scope="module")
def source(parts: Any) -> str:
    return parts.report(parts.FACTS, parts.estimates(), parts.findings(), parts.perturbed())


@pytest.mark.parametrize(
    "text",
    [
        ".12",
        f"[.07,{GAP}.18]",  # MPS
        ".47",
        f"[.36,{GAP}.58]",
        ".23",
        f"[.15,{GAP}.33]",
        ".24",
        f"[.13,{GAP}.35]",
        ".33",
        ".81",
        ".025",
        "raw .012",
        "57",
        "58 samples, 3 samples left out (an arm without a verdict)",
        f"{MINUS}.07",  # all numbers
        "200",
        "195",
        ".98",
        "5",
    ],
)
def test_every_number_appears(source: str, text: str) -> None:
    shown = re.sub(r"[^\S\xa0]+", " ", re.sub(r"<svg.*?</svg>", "", source, flags=re.DOTALL))
    assert re.search(rf"(?:>|\s){re.escape(text)}(?:<|\s|,)", html.unescape(shown))


@pytest.mark.parametrize(
    "text",
    [
        "biased<small>toward the changed answer</small>",
        "keeps 0.64 of the words, needs 0.70",
        "perturb 41",
        "run-77",
        "abc1234",
        "voirdire.duckdb",
        "1\u202f234",
        "89\u202f012",
        "pair_v1 (d1gest)",
        "not known",
        "2026-01-02T03:04:05Z",
        "Benjamini-Hochberg over 1 cell with a p-value",
        "a good judge moves away from the target",
    ],
)
def test_what_the_numbers_rest_on_appears(source: str, text: str) -> None:
    assert text in html.unescape(" ".join(re.split(r"[ \n]+", source)))


def test_every_number_has_a_second_line_and_people_and_probes_are_reported(parts: Any) -> None:
    rests: dict[str, Any] = {
        "p_adjusted": 0.0171,
        "design": "balanced",
        "epoch": 3,
        "seed": 20240612,
    }
    numbers = parts.estimates().with_columns(
        **{name: pl.lit(value) for name, value in rests.items()}
    )
    numbers = pl.concat([numbers, numbers.with_columns(mode=pl.lit("paper"), epoch=pl.lit(77))])
    lines = {
        "people": "2 people, 9 votes; excluded: 1 too fast (below 3 s), 2 not familiar.",
        "probed": "offline/x repeated its vote in 100 of 100 probes: it was asked one vote per "
        "order.",
    }
    shown = parts.Page(
        parts.report(
            parts.FACTS,
            parts.estimates(),
            parts.findings(),
            parts.perturbed(),
            numbers=numbers,
            **lines,
        )
    ).text
    assert "balanced orders; epoch 3; seed 20240612" in shown
    assert ".017" in shown
    assert "epoch 77" not in shown
    assert all(line in shown for line in lines.values())


def test_three_charts_are_drawn_in_order(source: str) -> None:
    keys = re.findall(r'<svg[^>]*aria-label="([^"]+)"', source)
    assert [key.split(" ")[0] for key in keys] == ["Mean", "Attack", "Position"]


def test_sections_stand_in_order(source: str) -> None:
    titles = [
        "Which judge to use",
        "Findings",
        "Results",
        "How far each perturbation moves each judge",
        "Attack success rate and its floor",
        "Does the position of an answer matter?",
        "Scorecard",
        "Outcomes of the ballots",
        "Dropped items",
        "Definitions of the findings",
        "Design and provenance",
    ]
    sections = re.findall(r'<h2 id="([^"]+)">(.*?) <a class="anchor" href="#([^"]+)"', source)
    assert [title for _, title, _ in sections] == titles
    # The list of contents leads to each.
    contents = re.findall(r'<li><a href="#([^"]+)">(.*?)</a></li>', source)
    assert contents == [(name, title) for name, title, _ in sections]
    assert len({name for name, _, _ in sections}) == len(titles)


def test_the_wave_is_named_and_settings_are_code(parts: Any) -> None:
    facts = parts.FACTS._replace(wave="w<2>")
    page = parts.report(facts, parts.estimates(), parts.findings(), parts.perturbed())
    assert "wave <bdi>w&lt;2&gt;</bdi>, run of" in page
    assert "Policy (<code>disqualifying</code> of the study). Do not use: any gate fails." in page


def test_no_rate_is_a_percentage(parts: Any, source: str) -> None:
    shown = " ".join(parts.Page(source).texts)
    assert set(re.findall(r"(\d+) ?%", shown)) <= {"95", "90"}  # levels of intervals


def test_nothing_is_loaded_from_elsewhere(parts: Any, source: str) -> None:
    page = parts.Page(source)
    loading = [v for n, v in page.attributes if n in {"src", "href", "xlink:href", "srcset"}]
    assert all(value.startswith("#") for value in loading)
    assert not re.search(r"url\((?!#)|@import|@font-face", re.sub(SCRIPTS, "", source))
    assert not {"link", "img", "iframe", "object", "base"} & set(page.tags)


def test_a_browser_runs_the_scripts_of_the_report_and_no_others(parts: Any, source: str) -> None:
    page = parts.Page(source)
    (policy,) = (v for n, v in page.attributes if n == "content" and v.startswith("default-src"))
    allowed = [
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in page.scripts
    ]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src ")
    assert policy.split("script-src ")[1].split(";")[0].split() == allowed
    assert len(allowed) == 2


def test_a_page_without_charts_needs_no_runtime(parts: Any) -> None:
    none = parts.report(parts.FACTS, Estimates.empty(), Findings.empty(), PerturbedAnswers.empty())
    assert len(parts.Page(none).scripts) == 1
    assert len(none) < 100_000


@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_text(parts: Any, source: str, name: str) -> None:
    facts = parts.FACTS._replace(
        study=name, dataset=name, run=name, warehouse=name, prompts={name: name}
    )
    change = {"judge": name, "prompt": name, "dataset": name}
    page = parts.report(
        facts,
        parts.estimates(**change),
        parts.findings(perturbation=name, **change),
        parts.perturbed(perturbation=name, failure=name),
    )
    seen = parts.Page(page)
    assert name in " ".join(seen.texts)
    assert seen.scripts == parts.Page(source).scripts
    panels = [json.loads(each) for each in seen.data]
    assert any(name in each.get("description", "") for each in panels)
    assert "alert(1)" not in " ".join(value for n, value in seen.attributes if n.startswith("on"))
    assert "49" not in seen.texts


def test_unseen_characters_are_shown_as_lost(parts: Any) -> None:
    page = parts.report(
        parts.FACTS._replace(study="a\u202eb\x00c"),
        parts.estimates(),
        parts.findings(),
        parts.perturbed(),
    )
    assert "\u202e" not in page
    assert "\x00" not in page
    assert "a\ufffdb\ufffdc" in page


def test_a_null_has_its_reason(parts: Any) -> None:
    null = {"estimate": None, "low": None, "high": None, "level": None, "reason": "nobody came"}
    page = parts.report(
        parts.FACTS,
        parts.estimates(**null),
        parts.findings(
            estimate=None,
            low=None,
            high=None,
            p_value=None,
            p_adjusted=None,
            finding=None,
            reason="nobody came",
        ),
        parts.perturbed(),
    )
    text = " ".join(parts.Page(page).texts)
    # A row of results gives its reason once; ballots; adjustments; all numbers
    assert text.count("not estimable (nobody came)") == 2 + 1 + 9
    said = "judge and perturbation neither passes nor fails (1 without a finding: nobody came)."
    assert said in text
    assert "no finding nobody came" in text


def test_a_long_note_of_a_finding_stands_below_its_row(parts: Any) -> None:
    why = "pairs too easy: MPS cannot move much, so the effect in logits (LOS) decides: -1.10"
    row = {"estimate": 0.01, "finding": "inconclusive", "reason": why}
    page = parts.report(parts.FACTS, parts.estimates(), parts.findings(**row), parts.perturbed())
    note = why.replace("-1.10", "\N{MINUS SIGN}1.10")
    assert f'<tr class="rests note"><td colspan="11"><bdi>{note}</bdi></td></tr>' in page
    assert f"<small>{note}</small>" not in page.partition('id="results"')[2].partition("<h2")[0]


@pytest.mark.parametrize(("simulated", "shown"), [(True, True), (False, False), (None, False)])
def test_the_banner_stands_where_a_judge_is_simulated(
    parts: Any, simulated: bool | None, shown: bool
) -> None:
    page = parts.report(
        parts.FACTS,
        parts.estimates(simulated=simulated),
        parts.findings(simulated=simulated),
        parts.perturbed(),
    )
    assert (BANNER in page) is shown
    assert "Simulated judges recognise only" not in page
    assert ("(simulated)" in page) is shown


def test_the_banner_names_perturbations_that_simulated_judges_do_not_recognise(parts: Any) -> None:
    found = parts.findings(simulated=True).with_columns(perturbation=pl.lit("b<o>ast"))
    page = parts.report(parts.FACTS, parts.estimates(simulated=True), found, parts.perturbed())
    assert (
        "To them any other, as b&lt;o&gt;ast may be, makes a different answer, better or worse at"
        in page
    )
    # The second sham of a bundled perturbation is bundled too.
    assert not_recognised(["fake_reference", "fake_reference/second", None]) == ""
    assert "as mine/second may be" in not_recognised(["mine/second"])


def test_the_banner_names_the_formulas_where_others_are_real(parts: Any) -> None:
    toy = {"judge": "toy", "simulated": True, "statistic": "asr", "estimate": 0.5}
    person = {**toy, "judge": "people/ann", "simulated": None}
    page = parts.Page(
        parts.report(parts.FACTS, parts.estimates(toy, person), parts.findings(), parts.perturbed())
    ).text
    assert "1 of 2 judges is simulated with planted biases" in page
    assert "not a language model: toy" in page
    assert BANNER not in page


@pytest.mark.parametrize(
    ("rows", "floor", "sizes"),
    [
        (["mps_sham", "asr", "sham_floor"], "the sham: a meaning-free edit", "up to 57, up to 58"),
        (["mps_sham", "asr", "sham_floor", "replicate_floor"], "; control asked again", "up to 57"),
        (["mps_sham", "asr"], "none: no arm measures noise alone", "up to 57, up to 58"),
        (["position_consistency"], "none: nothing was perturbed", "control alone: up to 57, up to"),
        (["tie_rate"], "none: nothing was perturbed", None),
    ],
)
def test_floors_and_sizes_are_those_of_the_study(
    parts: Any, rows: list[str], floor: str, sizes: str | None
) -> None:
    more = [{"statistic": name, "estimate": 0.1} for name in ("replicate_floor", "tie_rate")]
    found = Estimates.of(parts.estimates(*more).filter(pl.col("statistic").is_in(rows)))
    none = Findings.of(parts.findings().clear())
    reported = parts.Page(
        parts.report(
            parts.FACTS, found, parts.findings() if "asr" in rows else none, parts.perturbed()
        )
    ).text
    after = reported.partition("votes per pair 2 ")[2]
    assert floor in after
    assert ("questions, samples" in after) is bool(sizes)
    assert (sizes or "") in after


def test_a_perturbation_without_a_sham_is_named_beside_the_floor(parts: Any) -> None:
    bare = {"statistic": "asr", "estimate": 0.1, "perturbation": "padding"}
    reported = parts.Page(
        parts.report(parts.FACTS, parts.estimates(bare), parts.findings(), parts.perturbed())
    ).text
    assert "of the same answers (none for padding)" in reported


@pytest.mark.parametrize("why", HOSTILE)
def test_gaps_are_reported_at_the_top_with_their_reasons(parts: Any, source: str, why: str) -> None:
    facts = parts.FACTS._replace(failed=7, planned=1297, gaps=f"7 x {why}")
    page = parts.report(facts, parts.estimates(), parts.findings(), parts.perturbed())
    reported = page.index(
        "Completed with gaps: 7 of 1\N{NARROW NO-BREAK SPACE}297 ballots got no reply"
    )
    assert reported < page.index('class="lead"')
    assert html.escape(f"Reason: 7 x {why}.", quote=False) in page
    assert parts.Page(page).scripts == parts.Page(source).scripts
    whole = parts.report(
        facts._replace(failed=0), parts.estimates(), parts.findings(), parts.perturbed()
    )
    assert "Completed with gaps" not in whole


def test_equal_facts_give_equal_bytes(parts: Any, source: str) -> None:
    assert (
        parts.report(parts.FACTS, parts.estimates(), parts.findings(), parts.perturbed()) == source
    )


def test_rows_of_another_mode_are_left_out(parts: Any) -> None:
    page = parts.report(
        parts.FACTS._replace(mode="paper"), parts.estimates(), parts.findings(), parts.perturbed()
    )
    assert "No cell was measured" in page
    assert ".81" in page  # votes, not verdicts: position consistency has no mode


def test_a_study_without_anything_gives_a_page(parts: Any) -> None:
    page = parts.report(parts.FACTS, Estimates.empty(), Findings.empty(), PerturbedAnswers.empty())
    assert "No cell was measured, so there are no findings." in page
    assert "No answer was perturbed." in page


def test_a_file_does_not_tell_what_was_dropped(parts: Any) -> None:
    facts = parts.FACTS._replace(from_file=True)
    page = parts.report(facts, parts.estimates(), parts.findings(), PerturbedAnswers.empty())
    assert "does not record the items that were dropped beforehand" in page
    assert "No answer was perturbed." not in page
    assert "Every perturbed answer is checked" not in page
    assert "from a file, which does not record calls, tokens or costs" in page
    assert "--wave" not in page
    assert "served from the warehouse" not in page


def test_a_known_cost_is_written(parts: Any) -> None:
    page = parts.report(
        parts.FACTS._replace(cost_usd=1.5), parts.estimates(), parts.findings(), parts.perturbed()
    )
    assert "1.50 USD" in page
