from tasks.reporting.page import with_code


def test_parts_between_backticks_are_code_and_texts_stay_harmless() -> None:
    shown = with_code("<i> runs `voirdire show 'a<b'`, then `x`.")
    code = "<code>voirdire show &#39;a&lt;b&#39;</code>"
    assert shown == f"&lt;i&gt; runs {code}, then <code>x</code>."
