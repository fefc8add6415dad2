"""Judge prompts of the user's own: places, readings, and a name for each wording."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.prompts import PROMPTS, is_known, label_of, prompt_of, variants_of

TEXT = '''
kind = "pair"
source = "mine"
verdict = { pointer = "/better", map = { "1" = "first", "2" = "second", "0" = "tie" } }
user = """{question}
1: {answer_a}
2: {answer_b}
Reply with {"better": ...}."""
'''


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """File of a prompt in the user's own folder."""
    file = tmp_path / "prompts" / "mine.toml"
    file.parent.mkdir()
    file.write_text(TEXT)
    with monkeypatch.context() as patch:
        patch.setenv("VOIRDIRE_HOME", str(tmp_path))
        PROMPTS.read_own()
        yield file
    PROMPTS.read_own()


def test_each_wording_has_a_name_of_its_own(place: Path) -> None:
    label = label_of("mine")
    assert label == f"mine@{PROMPTS['mine'].digest}"
    assert label_of(label) == label
    assert prompt_of(label) is prompt_of("mine") is PROMPTS["mine"]
    place.write_text(TEXT.replace("Reply with", "Answer with"))
    PROMPTS.read_own()
    assert label_of("mine") != label
    assert not is_known(label)
    with pytest.raises(LookupError, match=r"^the judge prompt 'mine' has changed: it is mine@"):
        prompt_of(label)


def test_how_the_verdict_is_read_is_a_part_of_the_wording(place: Path) -> None:
    label = label_of("mine")
    place.write_text(TEXT.replace('"0" = "tie"', '"3" = "tie"'))
    PROMPTS.read_own()
    assert label_of("mine") != label


def test_a_bundled_prompt_keeps_its_name() -> None:
    assert label_of("pair_v2") == "pair_v2"
    assert not is_known("pair_v2@0123456789ab")
    assert not is_known("nothing")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{answer_b}", "{answer_c}", "{answer_c} is not a placeholder; {answer_b} is missing."),
        ("{answer_b}", "{answer}", "{answer} is not a placeholder; {answer_b} is missing."),
        ("{answer_a}", "", "{answer_a} is missing."),
        ('kind = "pair"', 'kind = "poem"', "the key kind is 'poem', but must be 'pair', 'sin"),
        ("user =", 'sytem = ""\nuser =', "no key 'sytem'. Did you mean 'system'?"),
        ('pointer = "/better", ', "", "it needs the key 'pattern' or the key 'pointer'"),
        ('"2" = "second"', '"2" = "worse"', "is 'worse', but must be 'first', 'second' or 'tie'"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(place: Path, old: str, new: str, said: str) -> None:
    place.write_text(TEXT.replace(old, new))
    PROMPTS.read_own()
    assert said in PROMPTS.unusable["mine"]
    assert str(place) in PROMPTS.unusable["mine"]


def test_a_wrong_kind_is_the_only_error(place: Path) -> None:
    verdicts = TEXT.replace('"first"', '"pass"').replace('"second"', '"fail"')
    place.write_text(verdicts.replace('kind = "pair"', 'kind = "binry"'))
    PROMPTS.read_own()
    assert "the key kind is 'binry'" in PROMPTS.unusable["mine"]
    assert "verdict" not in PROMPTS.unusable["mine"]


def test_a_misspelt_place_in_the_system_message_is_named(place: Path) -> None:
    place.write_text(TEXT.replace("user =", 'system = "For {questoin}:"\nuser ='))
    PROMPTS.read_own()
    assert "system: {questoin} is not a placeholder. Placeholders:" in PROMPTS.unusable["mine"]


def test_a_word_in_double_braces_is_no_place(place: Path) -> None:
    place.write_text(TEXT.replace("Reply with", "Write {{verdict}}. Reply with"))
    PROMPTS.read_own()
    user = PROMPTS["mine"].messages("Q", "one", "two")[-1]["content"]
    assert user == 'Q\n1: one\n2: two\nWrite {verdict}. Reply with {"better": ...}.'


VARIANTS = (
    TEXT
    + """
[variants.other]
system = "Please compare them."
"""
)


def test_variants_are_named_with_a_digest_of_their_words(place: Path) -> None:
    place.write_text(VARIANTS)
    PROMPTS.read_own()
    ((label, worded),) = variants_of("mine").items()
    assert label == f"other@{worded.digest}"
    assert (worded.system, worded.user) == ("Please compare them.", PROMPTS["mine"].user)
    assert worded.verdict == PROMPTS["mine"].verdict
    # The prompt's own name does not depend on its variants.
    own = label_of("mine")
    place.write_text(VARIANTS.replace("Please", "Now"))
    PROMPTS.read_own()
    assert label_of("mine") == own
    assert [*variants_of(own)] != [label]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("[variants.other]\n", "variant 'other' has the words of the prompt itself"),
        (
            '[variants.a]\nsystem = "x"\n[variants.b]\nsystem = "x"\n',
            "variant 'b' has the words of variant 'a'",
        ),
        ('[variants."A b"]\nsystem = "x"\n', "name of variant 'A b' must be"),
        (
            '[variants.c]\nuser = "{answer_a} {answer_b}"\n',
            "variant 'c' and the prompt itself differ in {question}",
        ),
    ],
)
def test_a_variant_that_rewords_nothing_is_refused(place: Path, more: str, why: str) -> None:
    place.write_text(f"{TEXT}\n{more}")
    PROMPTS.read_own()
    with pytest.raises((LookupError, ValueError), match=re.escape(why)):
        prompt_of("mine")


def test_a_missing_key_of_the_whole_file_is_named_alone(place: Path) -> None:
    text = TEXT.replace('kind = "pair"', 'kind = "single"').replace("{answer_a}", "{answer}")
    text = "\n".join(line for line in text.splitlines() if not line.startswith(("verdict", "2:")))
    place.write_text(text)
    PROMPTS.read_own()
    [problem] = PROMPTS.unusable.values()
    assert "cannot be used: kind 'single' needs the key 'scale'." in problem
    assert "the key :" not in problem


def test_a_problem_names_what_to_write(place: Path) -> None:
    def problem(text: str) -> str:
        place.write_text(text)
        PROMPTS.read_own()
        [said] = PROMPTS.unusable.values()
        return said

    without = "\n".join(line for line in TEXT.splitlines() if not line.startswith("source"))
    said = problem(without)
    assert "the file needs the key 'source'. Write where its words come from, such as " in said
    said = problem(TEXT.replace("{question}", "{anser}"))
    assert "cannot be used: user: {anser} is not a placeholder" in said
    labels = 'kind = "labels"\nsource = "own"\nlabels = []\nuser = "{question} {answer}"\n'
    assert "the key 'labels' is empty, but kind 'labels' needs labels" in problem(labels)
    pointer = (
        'kind = "pair"\nsource = "own"\nuser = "{question} {answer_a} {answer_b}"\n'
        '[verdict]\npointer = "result.grade"\nmap = { a = "first", b = "second" }\n'
    )
    said = problem(pointer)
    assert "pointer" in said
    assert "must begin with /, such as /result/grade" in said
