"""Studies: the user's own beside the bundled ones, their time zone, and which can spend."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from flows.cli.power_analysis import validity_line
from flows.running.ballots import make_pairs
from flows.studies import STUDIES, Study, StudyFile, _parse, make_study
from tasks.kit.catalogue import tables

Voirdire = Callable[..., Any]
OWN = 'about = "Mine."\n[study]\nlimit = 2\njudges = ["offline/random"]\n'


@pytest.fixture(params=["VOIRDIRE_HOME", "voirdire"])
def own(request: pytest.FixtureRequest, tmp_path: Path, environment: dict[str, str]) -> Path:
    """Return the folder of the user's own studies: of the variable, else of this folder."""
    home = tmp_path / ("elsewhere" if request.param == "VOIRDIRE_HOME" else "voirdire")
    if request.param == "VOIRDIRE_HOME":
        environment["VOIRDIRE_HOME"] = str(home)
    (home / "studies").mkdir(parents=True)
    return home / "studies"


def test_every_command_knows_a_study_of_ones_own(own: Path, voirdire: Voirdire) -> None:
    (own / "mine.toml").write_text(OWN)
    plan = voirdire("plan", "mine")
    assert plan.returncode == 0, plan.stderr
    assert "offline/random" in plan.stdout
    listed = voirdire("list", "studies")
    assert "Mine." in listed.stdout


def test_a_bad_study_of_ones_own_disables_itself_only(own: Path, voirdire: Voirdire) -> None:
    (own / "mine.toml").write_text(OWN)
    (own / "torn.toml").write_text("about = ")
    (own / "odd.toml").write_text('about = "Odd."\ncron = "often"\n[study]\nvotes = 2\n')
    (own / "quick.toml").write_text(OWN)
    for name, parts in {
        "torn": ("torn.toml", "not valid TOML"),
        "odd": ("odd.toml", "cron", "five fields", "votes"),
    }.items():
        done = voirdire("plan", name)
        assert done.returncode == 2
        assert done.stderr.startswith(f"voirdire: the study '{name}' of ")
        assert all(part in done.stderr for part in parts), done.stderr
        assert "Traceback" not in done.stderr
    assert voirdire("plan", "mine").returncode == 0
    listed = voirdire("list", "studies")
    assert listed.returncode == 0
    assert "Mine." in listed.stdout
    for name in ("torn", "odd", "quick"):
        assert f"the study '{name}' of " in listed.stderr
    assert "there is a bundled study of this name" in listed.stderr


def test_a_study_file_without_its_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('about = "Mine."\n')
    problem = tables("study", [], _parse, own=lambda: tmp_path).unusable["mine"]
    assert "cannot be used: the file needs the table [study], which says what is asked" in problem
    (tmp_path / "mine.toml").write_text('about = "Mine."\n[study]\n')
    assert tables("study", [], _parse, own=lambda: tmp_path)["mine"].study.name == "mine"


def test_each_problem_of_a_study_file_has_a_line(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        'abuot = "Mine."\ntimezone = "UTC"\nfolder = "x"\n[study]\njudgs = ["x"]\nlimit = "many"\n'
    )
    problem = tables("study", [], _parse, own=lambda: tmp_path).unusable["mine"]
    known = "Known: about, flow, cron, on_alert, study."
    file = tmp_path / "mine.toml"
    start = (
        f"the study 'mine' of {file} cannot be used:\n"
        f"- the file has no key 'abuot'. Did you mean 'about'? {known}\n"
        f"- the file has no key 'timezone'. Did you mean [study] timezone? {known}\n"
        f"- the file has no key 'folder'. Did you mean [study] folder? {known}\n"
        "- the file needs the key 'about'.\n"
        "- [study] has no key 'judgs'. Did you mean 'judges'? Known: judges, limit, "
    )
    assert problem.startswith(start), problem
    assert problem.endswith(
        "\n- [study] limit is 'many', but must be a whole number, at least 1. Give such a value, "
        "or leave the key out."
    )


def test_a_file_is_no_study_and_says_what_it_is_for(tmp_path: Path, voirdire: Voirdire) -> None:
    file = tmp_path / "my answers.csv"
    file.write_text("question,answer\n", encoding="utf-8")
    for command in ("audit", "plan"):
        refused = voirdire(command, str(file))
        assert refused.returncode == 2
        assert f"`voirdire audit --dataset '{file}'`" in refused.stderr
        assert f"`voirdire measure '{file}'`" in refused.stderr


def test_a_file_that_vanishes_hinders_no_other(tmp_path: Path) -> None:
    (tmp_path / "gone.toml").symlink_to(tmp_path / "nowhere")  # listed, and not there when read
    (tmp_path / "later.toml").write_text(OWN)
    own = tables("study", [], _parse, own=lambda: tmp_path)
    (tmp_path / "later.toml").unlink()
    assert [file.about for file in own.values()] == ["Mine."]
    assert own.unusable["gone"].endswith("gone.toml cannot be used: No such file or directory.")


def test_the_study_of_the_docs_can_be_used(tmp_path: Path) -> None:
    guide = Path(__file__).parents[2] / "docs" / "how-to" / "nightly.md"
    text = guide.read_text(encoding="utf-8")
    [lines] = re.findall(r"```toml\n(# voirdire/studies/mine.toml\n.*?)```", text, re.DOTALL)
    (tmp_path / "mine.toml").write_text(lines)
    own = tables("study", [], _parse, own=lambda: tmp_path)
    assert own.unusable == {}
    study = own["mine"].study
    study.check()
    assert (study.name, study.timezone, study.budget_usd) == ("mine", "Europe/Berlin", 2)
    assert own["mine"].cron
    # Its questions suffice for a judge whose replies are valid to pass the gate validity.
    pairs = make_pairs(study).shown
    assert pairs["cluster"].n_unique() == 40
    assert not validity_line(pairs, study.thresholds.most_invalid)


@pytest.mark.parametrize(
    ("zone", "moment", "date", "minute"),
    [
        ("UTC", (2026, 11, 22, 23, 30), "2026-11-22", "2026-11-22T23:30+00:00"),
        ("Europe/Berlin", (2026, 11, 22, 23, 30), "2026-11-23", "2026-11-23T00:30+01:00"),
        ("America/New_York", (2026, 11, 22, 3, 30), "2026-11-21", "2026-11-21T22:30-05:00"),
        # Clocks are set back on 25 October 2026: 02:30 comes twice.
        ("Europe/Berlin", (2026, 10, 25, 0, 30), "2026-10-25", "2026-10-25T02:30+02:00"),
        ("Europe/Berlin", (2026, 10, 25, 1, 30), "2026-10-25", "2026-10-25T02:30+01:00"),
    ],
)
def test_a_wave_is_of_the_day_in_the_studys_time_zone(
    zone: str, moment: tuple[int, ...], date: str, minute: str
) -> None:
    study = Study(wave="{date} {minute}", timezone=zone)
    assert study.at(datetime(*moment, tzinfo=UTC)).wave == f"{date} {minute}"  # type: ignore[misc,arg-type]


@pytest.mark.parametrize("zone", ["Berlin", "", "../etc/passwd", "Europe/", "/etc/localtime"])
def test_an_unknown_time_zone_is_refused(zone: str) -> None:
    with pytest.raises(ValueError, match="not a time zone"):
        Study(timezone=zone)


def test_what_is_detected_cannot_be_overlooked() -> None:
    Study(detects_at=0.21).check()
    for limits in ({"detects_at": 0.2}, {"thresholds": {"overlooks_below": 0.5}}):
        with pytest.raises(ValueError, match=r"detects_at .* must be greater than thresholds\."):
            Study.model_validate(limits).check()


@pytest.mark.parametrize("cron", ["often", "", "* * * *", "@daily"])
def test_a_cron_line_has_five_fields(cron: str) -> None:
    with pytest.raises(ValueError, match="five fields"):
        StudyFile(about="x", cron=cron, study=Study())


def test_studies_of_paid_judges_can_spend() -> None:
    spending = {name for name, file in STUDIES.items() if file.study.can_spend()}
    assert spending == {"nightly", "canary"}


def test_the_expensive_tier_runs_weekly_or_when_the_canary_alerts() -> None:
    canary, nightly = STUDIES["canary"], STUDIES["nightly"]
    assert canary.cron
    assert nightly.cron
    assert canary.cron.split()[4] == "*"
    assert nightly.cron.split()[4] == "1"
    assert canary.on_alert == "nightly"


def test_what_an_earlier_version_stored_stays_readable() -> None:
    now = json.loads(STUDIES["quick"].study.model_dump_json())
    earlier = {k: v for k, v in now.items() if k not in {"patience_seconds", "timezone"}}
    found = Study.stored(json.dumps({**earlier, "renamed_since": 3}))
    assert found == STUDIES["quick"].study
    del earlier["thresholds"]
    assert Study.stored(json.dumps(earlier)) == STUDIES["quick"].study
    first = ("minimum_shift", "most_ties", "nights_per_false_alert")  # there before the others
    limits = {name: now["thresholds"][name] for name in first}
    assert Study.stored(json.dumps({**now, "thresholds": limits})) == STUDIES["quick"].study
    limits = {**now["thresholds"], "most_ties": 0.5, "renamed_since": 3}
    assert Study.stored(json.dumps({**now, "thresholds": limits})).thresholds.most_ties == 0.5
    with pytest.raises(ValueError, match="renamed_since"):
        Study.model_validate({**now, "renamed_since": 3})
    with pytest.raises(ValueError, match="mode"):
        Study.stored(json.dumps({**now, "mode": "of another version"}))


@pytest.mark.parametrize("key", ['prompt = "pair_v1"', 'prompts = ["pair_v1"]'])
def test_a_study_names_one_prompt_or_several(key: str, own: Path, voirdire: Voirdire) -> None:
    (own / "mine.toml").write_text(OWN + f"{key}\n")
    done = voirdire("plan", "mine", "--prompt", "pair_v1", "--prompt", "pair_json_v2")
    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout.split())
    assert "offline/random / pair_v1" in shown
    assert "offline/random / pair_json_v2" in shown
    one = voirdire("plan", "mine")
    assert one.returncode == 0, one.stderr
    assert "offline/random" in one.stdout
    assert "/ pair" not in one.stdout


def test_prompts_are_given_once_and_by_one_key() -> None:
    changed = {"prompt": "pair_v1"}
    stored = {**json.loads(Study().model_dump_json()), **changed}
    del stored["prompts"]
    assert Study.stored(json.dumps(stored)).prompts == ["pair_v1"]
    assert Study.model_validate(changed).prompts == ["pair_v1"]
    assert make_study("quick", changed).prompts == ["pair_v1"]
    assert Study().at(datetime.now(UTC)).prompts == ["pair_v2"]
    with pytest.raises(ValueError, match="prompt and prompts are both given"):
        Study.model_validate({"prompt": "pair_v1", "prompts": ["pair_v2"]})
    with pytest.raises(ValueError, match="pair_v1 given more than once"):
        Study(prompts=["pair_v1", "pair_v1"])
    with pytest.raises(LookupError, match="no judge prompt 'pair_v9'"):
        Study(prompts=["pair_v2", "pair_v9"]).check()
    both = Study(prompts=["pair_v1", "pair_v2"])
    assert both.fingerprint() != Study(prompts=["pair_v1"]).fingerprint()


@pytest.mark.parametrize("field", ["seed", "limit"])
def test_a_text_for_a_number_without_an_upper_end_is_one_clear_error(field: str) -> None:
    with pytest.raises(ValueError, match=rf"^{field} is 'abc', but must be a whole number, at"):
        make_study("quick", {field: "abc"})


@pytest.mark.parametrize(
    ("cron", "said"),
    [
        ("99 * * * *", "bad minute"),
        ("0 24 * * *", "bad hour"),
        ("0 0 0 * *", "bad day-of-month"),
        ("0 0 * may-13 *", "bad month"),
        ("0 0 * * 1,8", "bad day-of-week"),
        ("*/0 * * * *", "bad minute"),
        ("x * * * *", "bad minute"),
    ],
)
def test_a_cron_line_that_no_time_matches_is_refused(
    voirdire: Voirdire, tmp_path: Path, cron: str, said: str
) -> None:
    file = tmp_path / "voirdire" / "studies" / "mine.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f'cron = "{cron}"\n{OWN}')
    plan = voirdire("plan", "mine")
    assert plan.returncode == 2
    for shown in (plan.stderr, voirdire("list", "studies").stderr):
        assert f"not a cron line ({said}). It has five fields: minute (0-59)" in shown
        assert repr(cron) in shown


@pytest.mark.parametrize(
    "cron",
    [
        "15 2 * * 1",
        "*/5 0-6,12 1,15 JAN-jun mon-FRI",
        "0 0 l * 7",
        "59 23 31 12 0",
        "0 9 ? * sat#2",
        "0 9 * * l5",
        "0 9-17/2 * * *",
    ],
)
def test_cron_lines_that_prefect_reads_are_read(cron: str) -> None:
    from prefect.client.schemas.schedules import CronSchedule

    assert (
        CronSchedule(cron=cron).cron
        == _parse("mine", {"about": "Mine.", "cron": cron, "study": {}}).cron
    )
