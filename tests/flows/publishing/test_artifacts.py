"""Texts of the artifacts in the Prefect UI."""

from flows.publishing.artifacts import _literal


def test_markdown_is_escaped() -> None:
    hostile = "<img src=x> [a](b) `c` **d** | # ~~e~~"
    assert _literal(hostile) == (r"\<img src=x\> \[a\](b) \`c\` \*\*d\*\* \| \# \~\~e\~\~")
