import pytest

from tasks.kit.printable import redact
from tasks.providers import Provider

SECRET = "sk-abc123"


@pytest.mark.parametrize(
    "name",
    [
        "OTHER_API_KEY",
        "HF_TOKEN",
        "AWS_ACCESS_KEY_ID",
        "myapikey",
        "DB_PASSWORD",
        "CLIENT_SECRET",
        "PREFECT_API_AUTH_STRING",
    ],
)
def test_values_named_like_a_key_are_not_shown(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, f" {SECRET}\n")
    assert redact(f"Incorrect key {SECRET}.") == "Incorrect key [key]."


def test_the_needs_of_a_provider_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSPORT", SECRET)
    assert redact(SECRET) == SECRET
    assert redact(SECRET, Provider(variables=["PASSPORT", "NOT_SET"]).secret_variables) == "[key]"
    monkeypatch.setenv("PASSPORT_KEY", SECRET)
    assert redact(SECRET, Provider(key_variable="PASSPORT_KEY").secret_variables) == "[key]"


def test_other_words_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    monkeypatch.setenv("EMPTY_KEY", " ")
    monkeypatch.setenv("SHORT_KEY", "the")
    assert redact("the word false") == "the word false"


def test_a_key_that_begins_with_another_is_hidden_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", SECRET)
    monkeypatch.setenv("B_KEY", f"{SECRET}-long")
    assert redact(f"{SECRET}-long {SECRET}") == "[key] [key]"


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("one\r\n  two\tthree ", "one two three"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("naïve  [bold]😀", "naïve  [bold]😀"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, reported: str) -> None:
    assert redact(text) == reported
    assert redact(reported) == reported
