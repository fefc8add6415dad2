"""What a user reads about a value that is not allowed in a file of the user's own folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Voirdire = Callable[..., Any]
STEP = "Give such a value, or leave the key out."
PROVIDER = """
[provider]
concurrency = 0
{provider}
[judges.one]
model = "openai/one"
{judge}
"""


def _write(folder: Path, kind: str, text: str) -> Path:
    file = folder / "voirdire" / kind / "mine.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


def _refused(voirdire: Voirdire, *words: str) -> str:
    """Return the error of a command, which is one line."""
    done = voirdire(*words)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = [each for each in done.stderr.splitlines() if "ignored" not in each]
    for raw in ("Input should", "String should", "validation", "pydantic"):
        assert raw not in line
    return str(line)


@pytest.mark.parametrize("command", ["plan", "audit"])
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            'limit = "many"',
            f"[study] limit is 'many', but must be a whole number, at least 1. {STEP}",
        ),
        ("limit = 1.5", "[study] limit is 1.5, but must be a whole number, at least 1."),
        ("limit = true", "[study] limit is true, but must be a whole number, at least 1."),
        ("detects_at = true", "[study] detects_at is true, but must be a finite number, above 0"),
        (
            "thresholds.fewest_questions = true",
            "thresholds.fewest_questions is true, but must be a whole number, at least 2 and",
        ),
        (
            "votes_per_pair = 200",
            "votes_per_pair is 200, but must be a whole number, at least 1 and",
        ),
        ("budget_usd = inf", "[study] budget_usd is inf, but must be a finite number, above 0."),
        ('judges = "offline/fair"', "judges is 'offline/fair', but must be a list in square brack"),
        ("judges = [3]", "[study] judges (entry 1) is 3, but must be a text in quotes."),
        ("perturbations = []", "[study] perturbations is [], but must have 1 or more entries."),
        ('sham = "third"', f"is 'third', but must be 'first', 'second', 'both' or 'none'. {STEP}"),
        ('probe = "perhaps"', "[study] probe is 'perhaps', but must be true or false."),
        ('votes_per_pair = "3"', "[study] votes_per_pair is '3', but must be a whole number, at"),
        ('probe = "yes"', "[study] probe is 'yes', but must be true or false."),
        ('thresholds.minimum_shift = ".1"', "minimum_shift is '.1', but must be a finite number"),
        ('wave = "{week}"', "[study] wave ('{week}'): {week} stands for nothing. Use {date} and"),
        ("wave = 3", "[study] wave is 3, but must be a text in quotes."),
        ('name = "a b"', "[study] name is 'a b', but must have 1 to 64 letters A to Z, digits"),
        ('timezone = "Mars"', "[study] timezone ('Mars'): not a time zone. Use a name of the IANA"),
        ("thresholds = 3", "[study] thresholds is 3, but must be a table."),
        (
            "thresholds.minimum_shift = 2",
            "[study] thresholds.minimum_shift is 2, but must be a finite number, above 0 and below",
        ),
        ('judges = ["offline/fairr"]', "no judge 'offline/fairr'. Did you mean 'offline/fair'?"),
        ("votes_per_pair = 3", "votes_per_pair (3) must be even in mode 'balanced'."),
    ],
)
def test_a_value_in_a_study_file_is_one_clear_error(
    voirdire: Voirdire, tmp_path: Path, command: str, wrong: str, said: str
) -> None:
    file = _write(tmp_path, "studies", f'about = "Mine."\n[study]\n{wrong}\n')
    reported = _refused(voirdire, command, "mine")
    assert reported.startswith(f"voirdire: the study 'mine' of {file}")
    assert said in reported


def _lines(voirdire: Voirdire, *words: str) -> list[str]:
    done = voirdire(*words)
    assert (done.returncode, done.stdout) == (2, "")
    return [line for line in done.stderr.splitlines() if "ignored" not in line]


def test_many_mistakes_in_a_study_file_have_a_line_each(voirdire: Voirdire, tmp_path: Path) -> None:
    wrong = "".join(f"strange_{n} = 1\n" for n in range(21))
    values = 'limit = "many"\nvotes_per_pair = 200\nthresholds = { minimum_shift = 2, x = 1 }\n'
    file = _write(tmp_path, "studies", f'about = "Mine."\n[study]\n{values}')
    head, *reported = _lines(voirdire, "audit", "mine")
    assert head == f"voirdire: the study 'mine' of {file} cannot be used:"
    starts = ["limit is 'many'", "votes_per_pair is 200", "thresholds.minimum_shift is 2"]
    assert [
        each for each in starts if not any(f"- [study] {each}, but must" in t for t in reported)
    ] == []
    assert any(line.startswith("- [study] thresholds has no key 'x'.") for line in reported)
    assert len(reported) == 4
    file.write_text(f'about = "Mine."\n[study]\n{values}{wrong}')
    head, *reported = _lines(voirdire, "audit", "mine")
    assert (len(reported), reported[-1]) == (21, "- and 5 more")
    names = 'judges = ["offline/fairr"]\nperturbations = ["x", "y"]\nprompts = ["z"]\n'
    file.write_text(f'about = "Mine."\n[study]\n{names}')
    head, *reported = _lines(voirdire, "audit", "mine")
    assert head == f"voirdire: the study 'mine' of {file}:"
    assert [line.partition(".")[0] for line in reported] == [
        "- no perturbation 'x'",
        "- no perturbation 'y'",
        "- no judge 'offline/fairr'",
        "- no judge prompt 'z'",
    ]


def test_mistakes_in_a_prompt_and_in_a_provider_file_have_a_line_each(
    voirdire: Voirdire, tmp_path: Path, environment: dict[str, str]
) -> None:
    criteria = '[[criteria]]\nnam = "tone"\nlow = "a"\nhigh = 5\n'
    _write(tmp_path, "prompts", f'kind = "rubrik"\nverdict = 5\nuser = "{{answer}}"\n{criteria}')
    _, *reported = _lines(voirdire, "audit", "--prompt", "mine")
    assert [line.partition(". ")[0].removesuffix(".") for line in reported] == [
        "- the key kind is 'rubrik', but must be 'pair', 'single', 'binary', 'rubric' or 'labels'",
        "- the file needs the key 'source'",
        "- the key verdict is 5, but must be 'tag', 'json' or 'ratings', or be a table",
        "- the key criteria.low (entry 1) is 'a', but must be a finite number",
        "- the file criteria (entry 1) needs the key 'name'",
        "- the file criteria (entry 1) has no key 'nam'",
    ]
    text = "x = 1\n" + PROVIDER.format(provider="y = 2", judge='mode = "z"')
    environment["VOIRDIRE_PROVIDERS"] = str(_write(tmp_path, "providers", text).parent)
    _, *reported = _lines(voirdire, "audit", "--judge", "mine/one")
    assert [line.partition("'")[0] for line in reported[:2]] == [
        "- the file has no key ",
        "- [provider] has no key ",
    ]
    assert any(line.startswith("- [judges.one] mode is") for line in reported)


def test_a_wrong_option_is_no_error_of_the_study_file(voirdire: Voirdire, tmp_path: Path) -> None:
    _write(tmp_path, "studies", 'about = "Mine."\n[study]\nlimit = 12\n')
    reported = _refused(voirdire, "plan", "mine", "--judge", "offline/fairr")
    assert reported.startswith("voirdire: no judge 'offline/fairr'.")


def test_all_values_in_a_provider_file_are_named_and_no_text_is_repeated(
    voirdire: Voirdire, tmp_path: Path, environment: dict[str, str]
) -> None:
    folder = tmp_path / "voirdire" / "providers"
    file = _write(
        tmp_path,
        "providers",
        PROVIDER.format(
            provider='timeout_seconds = "sk-live-1"\nserve = "sk-live-2 x"',
            judge='mode = "sk-live-3"\nusd_per_million = { prompt = -1, completion = 1 }',
        ),
    )
    environment["VOIRDIRE_PROVIDERS"] = str(folder)
    reported = "\n".join(_lines(voirdire, "plan", "quick", "--judge", "mine/one"))
    hidden = "is a text (not shown, because it may hold a secret), but must be"
    assert reported.startswith(f"voirdire: the provider 'mine' of {file} cannot be used:\n- ")
    assert "sk-live" not in reported
    for said in (
        f"[provider] concurrency is 0, but must be a whole number, at least 1. {STEP}",
        f"[provider] timeout_seconds {hidden} a finite number, above 0. {STEP}",
        f"[provider] serve {hidden} the name of a module, such as tools.server. {STEP}",
        f"[judges.one] mode {hidden} 'live' or 'batch'. {STEP}",
        "[judges.one] usd_per_million.prompt is -1, but must be a finite number, at least 0. Give",
    ):
        assert said in reported


@pytest.mark.parametrize(
    ("provider", "judge", "said"),
    [
        ("attempts = true", "", "[provider] attempts is true, but must be a whole number, at lea"),
        ("pause_seconds = false", "", "[provider] pause_seconds is false, but must be a finite"),
        (
            "",
            "usd_per_million = { prompt = true, completion = 1 }",
            "[judges.one] usd_per_million.prompt is true, but must be a finite number, at least 0.",
        ),
        (
            "simulated = true",
            "params.traits = { nu = true }",
            "[judges.one] params.traits nu is true, but must be a finite number, at least 0",
        ),
        (
            "simulated = true",
            "params.traits.effects = { beauty = true }",
            "'beauty' is true, but must be a number.",
        ),
    ],
)
def test_a_boolean_is_no_number_in_a_provider_file(
    voirdire: Voirdire, tmp_path: Path, provider: str, judge: str, said: str
) -> None:
    text = PROVIDER.replace("concurrency = 0", "").format(provider=provider, judge=judge)
    _write(tmp_path, "providers", text)
    assert said in _refused(voirdire, "plan", "quick", "--judge", "mine/one")


SCALE = """scale = { low = 1, high = 5 }
[verdict]
pattern = 'Good|Bad'
example = 'Good'
"""


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("scale = { low = 1, high = true }", "scale.high is true, but must be a finite number."),
        (f"{SCALE}map = {{ Good = true, Bad = 1 }}", "'Good' is true, but must be a number"),
    ],
)
def test_a_boolean_is_no_number_in_a_prompt_file(
    voirdire: Voirdire, tmp_path: Path, wrong: str, said: str
) -> None:
    head = 'kind = "single"\nsource = "own"\nuser = "{question} {answer}"\n'
    _write(tmp_path, "prompts", f"{head}{wrong}\n")
    assert said in _refused(voirdire, "plan", "quick", "--prompt", "mine")


BINARY = 'kind = "binary"\nsource = "own"\nuser = "{question} {answer}"\n'
GRADED = 'kind = "single"\nsource = "own"\nuser = "{question} {answer}"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            (
                f"{BINARY}[verdict]\npattern = '(JA|NEIN)'\nexample = '{{verdict}}'\n"
                "map = { ja = 'pass', nein = 'fail' }\n"
            ),
            "does not read ja in the example. A pattern distinguishes case: begin it with (?i)",
        ),
        (
            (
                f"{GRADED}scale = {{ low = 1, high = 5 }}\n[verdict]\npointer = '/grade'\n"
                "map = { '2,5' = 2.5 }\n"
            ),
            (
                "'2,5' = 2.5 is not a grade on the scale, which has whole grades only unless it "
                "sets whole = false"
            ),
        ),
    ],
)
def test_a_map_that_cannot_be_read_names_the_remedy(
    voirdire: Voirdire, tmp_path: Path, text: str, said: str
) -> None:
    file = _write(tmp_path, "prompts", text)
    words = ("plan", "quick", "--prompt", "mine", "--judge", "offline/random", "--limit", "2")
    assert said in _refused(voirdire, *words)
    file.write_text(text.replace("'(JA", "'(?i)(JA").replace("high = 5", "high = 5, whole = false"))
    done = voirdire(*words)
    assert all(mistake not in done.stderr for mistake in ("is not a grade", "does not read"))
