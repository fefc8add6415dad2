import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.judging.verdict_parser import MEANING, parse

# By hand from methods.md, section 0.
TABLE = [
    ("[[A]]", "first"),
    ("[[B]]", "second"),
    ("[[C]]", "tie"),
    ("[[tie]]", "tie"),
    ("[[Tie]]", "tie"),
    ("I prefer the second one. [[b]].", "second"),
    ("[[ tie ]]", "tie"),
    ("My verdict: [[ A ]]", "first"),
    ("[[\tB\xa0]].", "second"),
    ("[[\nC\n]]", "tie"),
    ("[[ A ]] at first, but no: [[ B]]", "second"),
    ("[[C]], that is, [[tie]]", "tie"),
    ("[[A]] is right. So: [[A]] it is", "first"),
    ("Reply with [[A]], [[B]] or [[C]]. I choose **[[B]]**\n", "second"),
    ("If A is better say [[A]]. My verdict: [[B]]", "second"),
    ("[[B]] would be wrong, so [[A]] \u201d \u2014 !", "first"),
    ("[[A]] or [[B]], who knows", "ambiguous"),
    ("[[A]] [[B]] \U0001f600", "ambiguous"),  # an emoji is no punctuation
    ("[[A]] then [[B]] then nothing more", "ambiguous"),
    ("[[[A]]]", "first"),
    ("[[A]", "invalid"),
    ("[A]", "invalid"),
    ("[[ D ]]", "invalid"),
    ("[[t ie]]", "invalid"),
    ("[ [A] ]", "invalid"),
    ("[[]]", "invalid"),
    ("[[D]]", "invalid"),
    ("[[AB]]", "invalid"),
    ("[[t\u0131e]]", "invalid"),  # a dotless i is another letter
    ("[[\uff21]]", "invalid"),  # so is a full-width A
    ("Answer A is better.", "invalid"),
    ("", "invalid"),
    (" \n\t", "invalid"),
    ("I'm sorry, but I can't help with that.", "abstain"),
    ("I\u2019m sorry, but I can\u2019t assist with that request.", "abstain"),
    ("I cannot compare these answers.", "abstain"),
    ("As an AI language model, I am unable to judge this.", "abstain"),
    ("Unfortunately, I must decline to answer.", "abstain"),
    ("I am not familiar with this topic.", "abstain"),
    ("Hm. I'm not familiar with it.", "abstain"),
    ("I can't help with that. [[A]]", "first"),  # a tag is a verdict
    ("Answer A says: I cannot help with that.", "invalid"),  # a quotation
    ("Answer B is not familiar with the topic.", "invalid"),
    ("Both are fine, I cannot fault either.", "invalid"),
    ("x" * 700 + ". I cannot help with that.", "invalid"),
]


@pytest.mark.parametrize(("reply", "choice"), TABLE)
def test_reply(reply: str, choice: str) -> None:
    assert parse(reply) == choice


TAGS = [f"[[{form}]]" for name in MEANING for form in (name, name.upper())]
WORDS = st.text(alphabet=st.characters(exclude_characters="[]"))


@given(WORDS, st.sampled_from(TAGS), WORDS)
def test_one_tag_counts_wherever_it_stands(before: str, tag: str, after: str) -> None:
    assert parse(before + tag + after) == MEANING[tag.strip("[]").lower()]


BLANKS = st.text(" \t\n\r\xa0", max_size=4)


@given(WORDS, BLANKS, st.sampled_from(TAGS), BLANKS, WORDS)
def test_blanks_inside_a_tag_change_nothing(
    before: str, left: str, tag: str, right: str, after: str
) -> None:
    blank = f"[[{left}{tag.strip('[]')}{right}]]"
    assert parse(before + blank + after) == parse(before + tag + after)
    assert parse(f"[[A]] {blank}") == parse(f"[[A]] {tag}")


@given(st.lists(st.tuples(WORDS, st.sampled_from(TAGS)), min_size=1), st.text(" \n.!*_)'"))
def test_a_final_tag_wins(parts: list[tuple[str, str]], end: str) -> None:
    reply = "".join(text + tag for text, tag in parts) + end
    assert parse(reply) == MEANING[parts[-1][1].strip("[]").lower()]


@given(st.lists(st.sampled_from(["[[A]]", "[[a]]", "[[B]]", "[[C]]", "[[tie]]", "so"])))
def test_tags_before_a_last_word_count_if_they_agree(parts: list[str]) -> None:
    # Second implementation: the set of tags by string search.
    reply = " ".join([*parts, "word"]).lower()
    found = {choice for name, choice in MEANING.items() if f"[[{name}]]" in reply}
    expected = "invalid" if not found else found.pop() if len(found) == 1 else "ambiguous"
    assert parse(reply) == expected


@given(
    st.text() | st.lists(st.sampled_from(["[[", "]]", "a", "tie", "\n", "I can't "])).map("".join)
)
def test_any_text_gives_a_choice(reply: str) -> None:
    assert parse(reply) in {"first", "second", "tie", "invalid", "abstain", "ambiguous"}


HOSTILE = {
    "brackets": "[" * 1_000_000,
    "half tags": "[[A]" * 250_000,
    "blank tags": "[[ " * 300_000,
    "a blank tag": "[[" + " " * 1_000_000 + "A",
    "tags": "[[A]][[B]]" * 100_000,
    "dots after each tag": ("[[A]][[B]]" + "." * 90) * 10_000 + "x",
    "dots at the end": "[[A]][[B]]" + "." * 1_000_000 + "x",
    "sorry": "sorry, " * 150_000,
    "spaces": " " * 1_000_000,
    "nul": "\0" * 1_000_000,
    "surrogates": "\ud800" * 1_000_000,
}


@pytest.mark.parametrize("reply", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_megabyte_is_read(reply: str) -> None:
    # Quadratic time would be minutes.
    assert parse(reply) in {"invalid", "second", "ambiguous"}
