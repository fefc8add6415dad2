import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from booth.web.markdown import rendered

REL = "noopener noreferrer nofollow"
TAGS = {
    "p",
    "br",
    "em",
    "strong",
    "s",
    "code",
    "pre",
    "ul",
    "ol",
    "li",
    "blockquote",
    "hr",
    "a",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "span",
    "h3",
    "h4",
    "h5",
    "h6",
}
SCRAPS = st.sampled_from(
    [
        "<script>",
        "</script>",
        "<img src=x onerror=a()>",
        "[a](",
        "javascript:a()",
        ")",
        "![b](",
        'http://x/" onload="',
        "**",
        "`",
        "```\n",
        "\n\n",
        "| a | b |\n|--:|---|\n",
        "&lt;",
        "<",
        "&#x3c;script>",
        "<!--",
        "<http://x>",
        "[r]: javascript:a()\n\n[r]",
        "data:text/html,",
        "\x00",
    ]
)


def test_markdown_and_emoji_are_shown() -> None:
    shown = rendered("# Big\n\n- **one** 😀\n- `two`\n\na\nb\n\n| x |\n|--:|\n| 1 |\n\n~~no~~")
    assert shown == (
        '<h3 class="h1">Big</h3>\n<ul>\n<li><strong>one</strong> 😀</li>\n'
        "<li><code>two</code></li>\n</ul>\n<p>a<br />\nb</p>\n"
        '<table>\n<thead>\n<tr>\n<th class="right">x</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n'
        '<td class="right">1</td>\n</tr>\n</tbody>\n</table>\n<p><s>no</s></p>\n'
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n"),
        ("<b>x</b>", "<p>&lt;b&gt;x&lt;/b&gt;</p>\n"),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>\n"),
        ("[x](JaVaScRiPt:alert(1))", "<p>[x](JaVaScRiPt:alert(1))</p>\n"),
        ("[x](data:text/html,1)", "<p>[x](data:text/html,1)</p>\n"),
        ("[x](/b/there)", "<p>[x](/b/there)</p>\n"),
        ("![a <b>](http://x/y.png)", '<p><span class="image">[image: a &lt;b&gt;]</span></p>\n'),
        ("![](http://x/y)", '<p><span class="image">[image: http://x/y]</span></p>\n'),
        (
            "[x](https://e.org)",
            f'<p><a href="https://e.org" rel="{REL}" target="_blank">x</a></p>\n',
        ),
        ("https://e.org", "<p>https://e.org</p>\n"),
        ("[x]()", "<p><a>x</a></p>\n"),
    ],
)
def test_html_is_text_and_nothing_is_fetched(text: str, shown: str) -> None:
    assert rendered(text) == shown


@given(st.lists(st.one_of(SCRAPS, st.text(max_size=5)), max_size=12).map("".join))
def test_no_text_makes_another_tag_or_attribute(text: str) -> None:
    shown = rendered(text)
    assert {name.lower() for name in re.findall(r"</?([a-zA-Z0-9]+)", shown)} <= TAGS
    for tag in re.findall(r"<[a-z][^>]*>", shown):
        names = re.findall(r'\s([a-z-]+)="[^"]*"', tag)
        assert set(names) <= {"class", "href", "rel", "target", "title", "start"}, tag
        for address in re.findall(r'href="([^"]*)"', tag):
            assert address.lower().startswith(("http://", "https://", "mailto:"))


def test_a_hostile_text_takes_no_time() -> None:
    assert len(rendered("[" * 20_000 + "*a " * 20_000 + ">" * 5000)) > 20_000
