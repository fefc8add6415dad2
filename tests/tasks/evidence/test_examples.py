"""Examples of the report: what is cut, what keeps its layout, and where the links lead."""

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import polars as pl
import pytest

from tasks.evidence import examples
from tasks.evidence.examples import Size, changes, cut, examples_of, shown, within
from tasks.rewriting.word_diff import Passage, changed_words

ROW: dict[str, Any] = {
    "dataset": "bloom",
    "judge": "ada",
    "simulated": False,
    "prompt": "plain",
    "wave": "",
    "category": None,
    "perturbation": "rich_content",
    "sample": "q1/a2",
    "criterion": "",
    "rating_kind": None,
    "control": "anchor",
    "experimental": "target",
    "sham": None,
    "question": "Why?\n\n    code()",
    "anchor": "So.",
    "target": "It is so. It ends.",
    "perturbed": "# It\r\n\n* is so.\n\t* It ends.",
    "repeat": None,
    "control_replies": ["First:\n  A\u202e"],
    "control_orders": ["anchor"],
    "experimental_replies": None,
    "experimental_orders": None,
    "total": 3,
}
HOSTILE = "a&b=c #?%2F/../\"'><é\n \\"


def one(**changes: Any) -> examples.Example:
    (group,) = examples_of(pl.DataFrame([ROW | changes]), "my study", several=False)
    (pair,) = group.pairs
    return pair


def test_texts_keep_their_layout_without_unseen_characters() -> None:
    pair = one()
    assert pair.question == ROW["question"]
    assert pair.replies == [("unperturbed, anchor first", "First:\n  A\N{REPLACEMENT CHARACTER}")]
    kept = {
        side: "".join(part.text for part in pair.target if part.change != other)
        for side, other in (("before", "added"), ("after", "removed"))
    }
    assert kept == {"before": ROW["target"], "after": "# It\n\n* is so.\n    * It ends."}
    assert {part.text.strip() for part in pair.target if part.change == "added"} <= {"#", "*", ""}


@pytest.mark.parametrize(
    ("kinds", "what", "options"),
    [
        ([None], "flipped", [""]),
        (["label"], "ratings flipped", [""]),
        (["number"], "grades moved", ["--moved"]),
        (["number", "label"], "ratings changed", ["", "--moved"]),
    ],
)
def test_grades_that_moved_are_counted_and_found_as_such(
    kinds: list[str | None], what: str, options: list[str]
) -> None:
    rows = [ROW | {"rating_kind": kind, "control": "6.0", "experimental": "8"} for kind in kinds]
    groups = examples_of(pl.DataFrame(rows), "my study", several=False)
    assert [group.what for group in groups] == [what]
    assert [option for _, option in changes(groups, "answer")] == options
    first = groups[0].pairs[0]
    assert first.changed == "6 \N{RIGHTWARDS ARROW} 8"
    assert first.commands[0].endswith(" --moved") == (kinds[0] == "number")


def test_of_white_space_alone_more_of_the_text_is_shown_than_of_a_passage_that_is_the_same() -> (
    None
):
    text = "It is so. " * 100
    pair = one(target=text, perturbed=text.replace(". ", ".\n  "))
    assert pair.name == "Target (only white space differs)"
    (part,) = pair.target
    assert part.change == "same"
    assert part.text.startswith("It is so.\n  It is so.\n")
    assert part.text.count("\n") > 30


@pytest.mark.parametrize(
    ("text", "size", "expected"),
    [
        ("one two\n  three", Size(15, 2), "one two\n  three"),
        ("one two\n  three", Size(14, 2), "one two…"),
        ("one two\n  three", Size(99, 1), "one two…"),
        ("one\n\n\ntwo", Size(99, 3), "one…"),
        ("  one two", Size(8, 9), "  one…"),
        ("x" * 9, Size(4, 9), "xxxx…"),
        (" " * 9, Size(4, 9), "…"),
        ("one", Size(0, 1), "…"),
        ("", Size(0, 1), ""),
    ],
)
def test_a_text_is_cut_between_words_or_lines(text: str, size: Size, expected: str) -> None:
    assert cut(text, size) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" short ", " short "),
        (f" one two {'x' * 40} three four ", " one two ... three four "),
        ("\n".join("abcdefg"), "a\nb\n...\nf\ng"),
        (f"one\n\n{'x' * 40}\n  two\n", "one\n...\n  two\n"),
    ],
)
def test_of_a_long_passage_that_is_the_same_both_ends_remain(text: str, expected: str) -> None:
    assert shown(Passage("same", text), Size(99, 99), Size(30, 5)) == expected
    assert shown(Passage("added", text), Size(99, 99), Size(30, 5)) == text


def test_a_target_of_many_changes_ends_where_its_size_does() -> None:
    parts = changed_words("one two three four five", "one\n2\nthree\n4\nfive")
    kept = list(within(parts, Size(99, 3)))
    assert "".join(part.text for part in kept if part.change != "removed") == "one\n2\nthree…"
    assert list(within(parts, Size(99, 9))) == parts


def test_an_example_stays_small() -> None:
    long = "\n".join(f"line {n}" for n in range(999))
    pair = one(question=long, anchor=long, perturbed=long, control_replies=[long])
    texts = [pair.question, pair.anchor, "".join(part.text for part in pair.target)]
    assert [text.count("\n") < 80 for text in texts] == [True] * 3
    assert pair.anchor.count("\n") == 39
    assert pair.replies[0][1].count("\n") == 11


def test_where_there_are_many_each_is_cut_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    long = {"anchor": "word " * 999, "perturbed": "word " * 999, "control_replies": ["word " * 999]}
    whole = one(**long)
    assert len(whole.anchor) == pytest.approx(2000, abs=10)
    assert len(whole.replies[0][1]) == pytest.approx(600, abs=10)
    monkeypatch.setattr(examples, "MOST_CHARACTERS", 2400)
    half = one(**long)
    assert len(half.anchor) == pytest.approx(1000, abs=50)
    assert len(half.replies[0][1]) == pytest.approx(300, abs=20)


@pytest.mark.parametrize("name", [HOSTILE, "plain"])
def test_the_link_leads_to_the_page_of_the_pair(name: str) -> None:
    named = dict.fromkeys(("judge", "prompt", "wave", "perturbation", "sample"), name)
    (group,) = examples_of(pl.DataFrame([ROW | named]), name, several=False)
    address = urlsplit(group.pairs[0].address)
    assert (address.scheme, address.netloc) == ("http", "127.0.0.1:8760")
    assert unquote(address.path.removeprefix("/study/")) == name
    assert "/" not in address.path.removeprefix("/study/")
    assert dict(parse_qsl(address.query, strict_parsing=True)) == named
    assert not {*group.pairs[0].address} & {*"\"'<> \n\\#"}
