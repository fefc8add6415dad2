import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.perturbations import PERTURBATIONS, Item
from tasks.rewriting.phrases import NEUTRAL, NEUTRAL_LEADS, PADDING_LEADS, SWAPS
from tasks.rewriting.plain_content import Decorations, canonical, features

PIECES = st.sampled_from(
    [
        *NEUTRAL[:12],
        *PADDING_LEADS,
        *NEUTRAL_LEADS,
        *SWAPS,
        *SWAPS.values(),
        "References",
        "Sources:",
        "Reference: ",
        "(Smith, 2019)",
        "(Lee et al., n.d.)",
        "[1]",
        "https://example.org/a",
        "**",
        "_",
        "`",
        "- ",
        "1. ",
        "# ",
        "🌍",
        "1\ufe0f\u20e3",
        ":sun:",
        ". ",
        "! ",
        "\n",
        "\n\n",
        ", ",
        "'",
        "(",
        ")",
        "\x00",
        "İ",
        "ß",
        "Tide",
        "falls",
        "7",
        "t",
    ]
)
TEXTS = st.one_of(
    st.text(max_size=80),
    st.lists(PIECES, max_size=20).map("".join),
    st.lists(PIECES, max_size=20).map(" ".join),
)


@given(TEXTS)
def test_is_idempotent(text: str) -> None:
    once = canonical(text)
    assert canonical(once) == once


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("**The** _tide_ `falls`.", "the tide falls"),
        ("# Tide\n- It falls. 🌊\n1. It rises :wave:", "tide it falls it rises"),
        ("See [the tide](https://example.org/x).", "see the tide"),
        ("The tide falls (Smith et al., 2019) [1, 2].", "the tide falls"),
        ("The tide falls (Chang, R. (2013). Tides (2nd ed.). Press).", "the tide falls"),
        ("The tide falls.\n\nReferences\nMoor, A. (2001). Tides.", "the tide falls"),
        ("The tide falls. Reference: NASA. (1971). Tides.", "the tide falls"),
        ("The tide falls. More at https://example.org/tide", "the tide falls more at"),
        ("The tide falls. It rises. Once again, the tide falls.", "the tide falls it rises"),
        ("The tide falls. I hope this helps.", "the tide falls"),
        ("Put simply: The tide does not fall.", "the tide doesn t fall"),
        ("It is the ratio 10:30:45.", "it is the ratio 10 30 45"),
        ("", ""),
        ("🌍", ""),
    ],
)
def test_literal(text: str, words: str) -> None:
    assert canonical(text) == words


def test_keeps_what_changes_the_content() -> None:
    assert canonical("The tide falls twice.") != canonical("The tide falls thrice.")
    assert canonical("It does move.") != canonical("It does not move.")


def test_versions_of_the_bundled_questions_differ_and_templates_do_not(
    bundled: list[tuple[Item, dict[str, str]]],
) -> None:
    seen = set()
    for item, versions in bundled:
        same = canonical(item.answer)
        for name in ("fake_reference", "rich_content", "padding"):
            made = PERTURBATIONS[name].make(item, 3)
            assert made is not None
            assert canonical(made) == same
        seen |= {same, *(canonical(version) for version in versions.values())}
    assert len(seen) == 3 * 60


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("The tide falls.", Decorations(0, 0, 0, 0, 3)),
        # an entry with a link is one entry
        ("It falls.\n\nReferences\nA, B. (2001). C. https://x.org\nD, E. (2002). F.", (2, 0, 0, 0)),
        ("It falls (Moor, 2001), see https://example.org/a and [3].", (3, 0, 0, 0)),
        ("- **It** falls. 🌊\n- *It* rises. ✨", (0, 4, 2, 0)),
        ("# Tide :ocean:\n1. `a`\n2. [b](c)", (0, 5, 1, 0)),
        ("It falls. It rises. To repeat, it falls. In short: It rises.", (0, 0, 0, 2)),
        ("2*x=24, so 3*x=36 and snake_case_name.", (0, 0, 0, 0)),
        ("At 10:30:45 the ratio was 1:2.", (0, 0, 0, 0)),
    ],
)
def test_features(text: str, counts: tuple[int, ...]) -> None:
    assert features(text)[: len(counts)] == counts


def test_features_of_the_bundled_questions(bundled: list[tuple[Item, dict[str, str]]]) -> None:
    for item, versions in bundled:
        for text in (item.answer, *versions.values()):
            assert features(text)[:4] == (0, 0, 0, 0), item.answer_id
        references = PERTURBATIONS["fake_reference"].make(item, 3) or ""
        beauty = PERTURBATIONS["rich_content"].make(item, 3) or ""
        padded = PERTURBATIONS["padding"].make(item, 3) or ""
        assert 1 <= features(references).references <= 3
        assert features(references)[1:4] == (0, 0, 0)
        assert features(beauty).markup >= 1 <= features(beauty).emoji
        assert features(beauty).references == features(beauty).padding == 0
        assert features(padded).padding >= 1
        assert features(padded)[:3] == (0, 0, 0)


HOSTILE = [
    " ",
    "\n",
    "\t",
    "*",
    "[",
    "(A, 2019 ",
    "((((A, (2000 ",
    ". ",
    "\n- ",
    ":a",
    "in short ",
    "is able to t ",
    "\nreferences ",
    "<b ",
    "_a ",
    "**a",
    "www.",
    '. a "',
    "![](",
    "\n|a",
    "1. ",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_long_hostile_text_has_one_canonical_form(piece: str) -> None:
    # 0.2 s each; a quadratic step would take minutes.
    text = piece * (300_000 // len(piece))
    assert canonical(canonical(text)) == canonical(text)
    assert min(features(text)) >= 0
