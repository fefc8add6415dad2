from tasks.prompting.prompt import RESPONSE_FORMAT
from tasks.prompts import PROMPTS

PROMPT = PROMPTS["pair_json_v2"]


def test_it_asks_for_an_object_and_shows_the_answers_like_the_plain_one() -> None:
    assert PROMPT.params == {"response_format": RESPONSE_FORMAT}
    assert PROMPT.user == PROMPTS["pair_v2"].user
    assert "[[A]]" not in PROMPT.system
    assert '"reason" explains your comparison' in PROMPT.system
