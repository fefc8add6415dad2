import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tasks.kit.catalogue import tables
from tasks.providers import PROVIDERS, Judge, Provider, _parse, api_base

SECRET = "sk-live-0123456789"


def _judge(**params: Any) -> Judge:
    return Judge(judge="desk/one", provider="desk", model="openai/one", params=params)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("api_key", "key_variable"),
        ("api_base", "api_base under"),
        ("base_url", "api_base under"),
        ("timeout", "timeout_seconds"),
        ("request_timeout", "timeout_seconds"),
        ("num_retries", "attempts"),
        ("max_retries", "attempts"),
        ("drop_params", 'unsupported = "drop"'),
        ("model", "the judge's model"),
        ("custom_llm_provider", "the judge's model"),
        ("headers", "extra_headers"),
        ("messages", "system"),
        ("n", "one whole reply"),
        ("best_of", "one whole reply"),
        ("candidateCount", "one whole reply"),
        ("num_predict", "give max_tokens"),
        ("models", "the judge's model"),
        ("web_search_options", "no budget"),
        ("stream", "one whole reply"),
        ("fallbacks", "the judge's own reply"),
        ("mock_response", "the judge's own reply"),
    ],
)
def test_what_is_no_parameter_of_the_model_is_refused(name: str, advice: str) -> None:
    with pytest.raises(
        ValueError, match=rf"params\.{name} is not a parameter .*{advice}"
    ) as refused:
        _judge(**{name: SECRET})
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"max_tokens": 9}, "max_tokens"),
        ({"max_completion_tokens": 9}, "max_completion_tokens"),
        ({"n": 5}, "n"),
        ({"best_of": 5}, "best_of"),
        ({"model": "dearer"}, "model"),
        ({"service_tier": "priority"}, "service_tier"),
        ({"generationConfig": {"maxOutputTokens": 9}}, "generationConfig.maxOutputTokens"),
    ],
)
def test_nothing_passes_the_budget_in_the_body(body: dict[str, Any], place: str) -> None:
    with pytest.raises(ValueError, match=rf"params\.extra_body\.{place} is not allowed there: "):
        _judge(extra_body=body)


def test_what_a_server_of_ones_own_takes_passes_in_the_body() -> None:
    body = {"top_k": 1, "chat_template_kwargs": {"enable_thinking": False}, "guided": {"n": {}}}
    assert _judge(extra_body=body).params == {"extra_body": body}


@pytest.mark.parametrize(
    ("params", "place"),
    [
        ({"extra_headers": {"Authorization": SECRET}}, "extra_headers.Authorization"),
        ({"extra_headers": {"X-Api-Key": SECRET}}, "extra_headers.X-Api-Key"),
        ({"extra_body": {"a": [{"auth_token": SECRET}]}}, "extra_body.a.auth_token"),
        ({"extra_query": {"key": SECRET}}, "extra_query.key"),
        ({"aws_secret_access_key": SECRET}, "aws_secret_access_key"),
        ({"vertex_credentials": SECRET}, "vertex_credentials"),
        ({"azure_ad_token": SECRET}, "azure_ad_token"),
    ],
)
def test_a_secret_among_the_parameters_is_refused(params: dict[str, Any], place: str) -> None:
    with pytest.raises(ValueError, match=f"params.{place} would put a secret") as refused:
        _judge(**params)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("since = 2026-01-01", r"params\.since \(2026-01-01\) is a date"),
        ("a = { b = [{ c = 2026-01-01T00:00:00Z }] }", r"params\.a\.b\.c \(2026.*\) is a datetime"),
        ('stop = ["x", 07:30:00]', r"params\.stop \(07:30:00\) is a time"),
        ("temperature = inf", r"params\.temperature \(inf\) is a float"),
        ("temperature = nan", r"params\.temperature \(nan\) is a float"),
    ],
)
def test_what_a_request_cannot_hold_is_refused(toml: str, said: str) -> None:
    with pytest.raises(
        ValueError, match=f"{said}, which JSON, and so a request, cannot hold. Give"
    ):
        _judge(**tomllib.loads(toml))


def test_parameters_of_a_request_are_taken() -> None:
    params = {
        "temperature": 0,
        "max_tokens": 9,
        "max_completion_tokens": 9,
        "logit_bias": {"12": 1},
        "prompt_cache_key": "x",
        "reasoning_effort": "low",
        "api_version": "v1",
        "aws_region_name": "us-east-1",
        "extra_headers": {"x-team": "desk"},
        "stop": ["x", "y"],
        "bias": [[1, 0.5], [None, True]],
    }
    assert _judge(**params).params == params


ADDRESSES = [
    f"https://me:{SECRET}@example.org/v1",
    f"https://{SECRET}@example.org",
    f"https://example.org/v1?api-key={SECRET}",
    f"https://example.org/v1?key={SECRET}",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_that_holds_a_secret_is_refused(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="api_base holds a user, password or key") as refused:
        Provider(api_base=address)
    assert SECRET not in str(refused.value)
    monkeypatch.setenv("DESK_API_BASE", address)
    with pytest.raises(ValueError, match="DESK_API_BASE holds a user, password") as refused:
        api_base(Provider(api_base_variable="DESK_API_BASE"))
    assert SECRET not in str(refused.value)


def test_other_addresses_are_taken() -> None:
    address = "http://127.0.0.1:8000/v1?version=2"
    assert api_base(Provider(api_base=address)) == address


def test_an_error_elsewhere_repeats_no_secret() -> None:
    for data in (
        {"provider": {"api_key": SECRET}},
        {"provider": {"concurrency": SECRET}},
        {"judges": {"one": {"model": "openai/one", "api_key": SECRET}}},
    ):
        with pytest.raises(ValueError, match=r"api_key|concurrency") as refused:
            _parse("desk", data)
        assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            {"judges": {"one": {"modle": "openai/one"}}},
            "[judges.one] has no key 'modle'. Did you mean 'model'? Known: concurrency, ",
        ),
        (
            {"judges": {"one": {"model": "openai/one", "temperature": 0}}},
            "[judges.one] has no key 'temperature'. Parameters of the model belong in params. ",
        ),
        (
            {"judges": {"one": {"model": "m", "usd_per_million": {"promt": 1, "completion": 1}}}},
            "[judges.one] usd_per_million has no key 'promt'. Did you mean 'prompt'?",
        ),
        (
            {"provider": {"api_bas": ""}},
            "[provider] has no key 'api_bas'. Did you mean 'api_base'?",
        ),
        ({"judge": {"one": {}}}, "the file has no key 'judge'. Did you mean 'judges'?"),
        ({"judges": {"one": "openai/one"}}, "[judges.one] must be a table."),
        ({"judges": "one"}, "[judges] must be a table"),
    ],
)
def test_what_a_file_does_not_take_is_named(data: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=r"no key|must be a table") as refused:
        _parse("desk", data)
    assert said in str(refused.value)
    assert "pydantic" not in str(refused.value)


KNOWN = "Known: omega, nu, kappa, "


@pytest.mark.parametrize(
    ("traits", "said"),
    [
        ({"kapa": 1}, f"[judges.b] params.traits has no key 'kapa'. Did you mean 'kappa'? {KNOWN}"),
        ({"omega": -1}, "[judges.b] params.traits omega is -1, but must be a finite number, at l"),
        (
            {"omega": "high"},
            "[judges.b] params.traits omega is 'high', but must be a finite number",
        ),
        ({"temperature": 0.001}, "temperature (0.001): temperature 0.001 must be 0 or at least"),
        (
            {"nu": 200, "pi": 2},
            "params.traits pi is 2, but must be a finite number, at least 0 and at most 1.",
        ),
        ({"effects": {"gloss": 1}}, "effects.gloss: this key must be 'reference', 'beauty', 'pad"),
        ({"effects": {"beauty": "x"}}, "effects ({'beauty': 'x'}): 'beauty' is 'x', but must be"),
        ({"waves": {"n2": {"kapa": 1}}}, "waves.n2 has no key 'kapa'. Did you mean 'kappa'?"),
        (
            {"waves": {"n2": {"pi": 3}}},
            "waves.n2 pi is 3, but must be a finite number, at least 0 an",
        ),
        ({"waves": {"n2": {"waves": {}}}}, f"waves.n2 has no key 'waves'. {KNOWN}"),
        (None, "[judges.b] params.traits must be a table."),
    ],
)
def test_traits_are_checked_when_the_file_is_read(traits: Any, said: str) -> None:
    params = {} if traits is None else {"traits": traits}
    judges = {
        "a": {"model": "offline/a", "params": {"traits": {}}},
        "b": {"model": "offline/b", "params": params},
    }
    with pytest.raises(ValueError, match=r"docs/reference/providers\.md") as refused:
        _parse("sim", {"provider": {"simulated": True}, "judges": judges})
    assert said in str(refused.value)


def test_simulated_judges_have_no_price_and_others_no_traits() -> None:
    judge = {"model": "offline/a", "params": {"traits": {}}}
    priced = judge | {"usd_per_million": {"prompt": 0, "completion": 0}}
    with pytest.raises(ValueError, match=r"\[judges.a\] usd_per_million: .* costs nothing"):
        _parse("sim", {"provider": {"simulated": True}, "judges": {"a": priced}})
    with pytest.raises(ValueError, match=r"\[judges.a\] params.traits .* set simulated = true"):
        _parse("sim", {"judges": {"a": judge}})


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "ftp://host/x",
        "unix:///run/s",
        "localhost:8080",
        "/etc",
        "//host/x",
        "http://",
        "https:///x",
        "javascript:alert(1)",
        "http://[::1",
        "data:,x",
    ],
)
def test_an_address_is_one_of_the_web(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValidationError, match="begins with http:// or https://"):
        Provider(api_base=address)
    monkeypatch.setenv("MY_API_BASE", address)
    with pytest.raises(ValueError, match="MY_API_BASE must be an address") as raised:
        api_base(Provider(api_base_variable="MY_API_BASE"))
    assert str(raised.value).endswith("an address that begins with http:// or https://.")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("localhost:8080/v1", True),
        ("ftp://judge.example.com/v1", True),
        ("sk-abc123456789", False),
        ("me:word@localhost:8080", False),
        ("localhost:8080?key=abc", False),
        ("eyJhbGciOiJIUzI1NiIs.eyJzdWIiOiIxMjM0", False),
    ],
)
def test_an_address_is_shown_unless_it_may_hold_a_secret(address: str, shown: bool) -> None:
    with pytest.raises(ValidationError, match="must be an address that begins") as raised:
        Provider(api_base=address)
    assert (f"api_base is '{address}', but api_base must be" in str(raised.value)) == shown
    assert (address in str(raised.value)) == shown


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "HOME",
        "USER",
        "PWD",
        "SSH_AUTH_SOCK",
        "openai_api_key",
        "KEY",
        "_KEY",
        "MY KEY",
        "KEYBOARD",
        "MY_KEY_FILE",
        "A=B_KEY",
        "MY_KEY\n",
    ],
)
def test_a_key_variable_is_named_like_a_key(name: str) -> None:
    with pytest.raises(ValidationError, match="not the name of an API key"):
        Provider(key_variable=name)


def test_a_key_in_the_place_of_its_variable_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "desk.toml").write_text(
        "[provider]\nkey_variable = 'sk-abc123456789'\n"
        "[judges.one]\nmodel = 'openai/one'\nmode = 'sk-abc123456789'\n"
    )
    said = tables("provider", [], _parse, own=lambda: tmp_path).unusable["desk"]
    hidden = "a text (not shown, because it may hold a secret)"
    assert f"key_variable: {hidden} is not the name of an API key's variable" in said
    assert f"[judges.one] mode is {hidden}, but must be 'live' or 'batch'" in said
    assert "sk-abc" not in said


@pytest.mark.parametrize("name", ["", "OPENAI_API_KEY", "HF_TOKEN", "X_SECRET", "TEAM_KEY_2"])
def test_names_of_keys(name: str) -> None:
    assert Provider(key_variable=name).key_variable == name


def test_every_bundled_provider_is_read() -> None:
    assert PROVIDERS.unusable == {}
    assert all(PROVIDERS[name].judges for name in PROVIDERS)
