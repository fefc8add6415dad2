import json

from tasks.prompts import PROMPTS

PROMPT = PROMPTS["labels_v1"]


def test_it_lists_the_labels() -> None:
    user = PROMPT.messages("Why?", "So.")[-1]["content"]
    listed = "- wrong fact\n- incomplete\n- off topic\n- unclear\n- stereotype\n\n[Question "
    assert user.startswith(f"Labels:\n{listed}")


def test_the_object_that_it_asks_for_is_read() -> None:
    schema = PROMPT.params["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["labels"]["items"]["enum"] == list(PROMPT.labels)
    replies = [
        json.dumps({"reason": "Hm.", "labels": labels})
        for labels in (["unclear", "wrong fact"], [], ["rude"])
    ]
    assert [PROMPT.rate(reply) for reply in replies] == [
        ("rated", {"": ("wrong fact", "unclear")}),
        ("rated", {"": ()}),
        ("invalid", {}),
    ]
