from tasks.prompting.prompt import VERDICT_ONLY
from tasks.prompts import PROMPTS

PROMPT, LONGER = PROMPTS["pair_verdict_v2"], PROMPTS["pair_json_v2"]


def test_it_is_the_longer_one_without_a_reason() -> None:
    begin, end = PROMPT.system.split('"verdict"')
    assert LONGER.system.startswith(begin)
    assert LONGER.system.endswith(f'"verdict"{end}')
    assert "reason" not in PROMPT.system
    assert PROMPT.user == LONGER.user
    assert PROMPT.params == {"response_format": VERDICT_ONLY}
