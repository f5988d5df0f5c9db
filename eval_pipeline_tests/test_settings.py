"""Where settings come from, what is said about wrong ones, and that keys stay hidden."""

import shutil
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.settings.loading import VARIABLES, SettingsError
from eval_pipeline.settings.sections import Experiment
from eval_pipeline.settings.settings import SETTINGS_FILE, Settings
from eval_pipeline_tests.builders import a_model, settings_in

PROJECT = Path(__file__).parent.parent
KEY = "sk-live-0123456789"
HOOK = "https://hooks.example/services/T0000/B0000/planted-0123456789"
HUB = {"repository": "cais/hle", "revision": "main"}


def load(folder: Path, **environment: str) -> Settings:
    return Settings.from_env({"EVALS_SETTINGS": str(folder / SETTINGS_FILE), **environment})


def complaint(folder: Path, **environment: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load(folder, **environment)
    return str(caught.value)


def test_the_committed_settings_are_the_offline_demo(tmp_path: Path) -> None:
    shutil.copy(PROJECT / SETTINGS_FILE, tmp_path)

    settings = load(tmp_path)

    assert [(gateway.kind, gateway.address) for gateway in settings.gateways] == [("demo", None)]
    assert settings.judge.model == "demo/judge"
    assert settings.budget.usd_per_run is not None
    assert settings.keys == {}
    assert all(suite.path and (PROJECT / suite.path).exists() for suite in settings.suites)


def test_the_environment_comes_before_dotenv_and_dotenv_before_the_file(tmp_path: Path) -> None:
    settings_in(
        tmp_path,
        plan={"max_samples": 1, "test_filter": "file", "categories": ["file"]},
    )
    (tmp_path / ".env").write_text("TEST_FILTER=dotenv\nCATEGORIES=dotenv\n")

    plan = load(tmp_path, CATEGORIES="environment").plan

    assert (plan.max_samples, plan.test_filter, plan.categories) == (1, "dotenv", ("environment",))


def test_the_process_environment_and_the_working_folder_are_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_in(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVALS_SETTINGS", raising=False)
    monkeypatch.setenv("MAX_SAMPLES", "2")

    settings = Settings.from_env()

    assert settings.plan.max_samples == 2
    assert settings.database == tmp_path / "data" / "evals.duckdb"


def test_a_blank_variable_changes_nothing(tmp_path: Path) -> None:
    settings_in(tmp_path, plan={"max_samples": 7, "categories": ["Math"]})

    settings = load(tmp_path, MAX_SAMPLES=" ", CATEGORIES="", EVALS_EXPERIMENT="")

    assert settings == load(tmp_path)
    assert (settings.plan.max_samples, settings.plan.categories) == (7, ("Math",))


EFFECTS = [
    ("MODELS", "a/b, c/* ,,", "selection.models", ("a/b", "c/*")),
    ("EXCLUDE_MODELS", "a/b", "selection.exclude_models", ("a/b",)),
    ("EXCLUDE_PROVIDERS", "x,y", "selection.exclude_providers", ("x", "y")),
    ("TEST_FILTER", "^q[12]$", "plan.test_filter", "^q[12]$"),
    ("TEXT_ONLY", "true", "plan.text_only", True),
    ("MAX_SAMPLES", "5", "plan.max_samples", 5),
    ("SAMPLES", "3", "plan.samples", 3),
    ("SUITES", "sample, other", "plan.suites", ("sample", "other")),
    ("CATEGORIES", "Math, Other Things", "plan.categories", ("Math", "Other Things")),
    ("EVALS_DEPLOYMENT", "prod", "deployment", "prod"),
    ("EVALS_EXPERIMENT", "warm", "experiment", "warm"),
    ("EVALS_DATA_DIR", "elsewhere", "data_dir", Path("elsewhere")),
    ("EVALS_LOG", "json", "log", "json"),
    ("OUTPUT_TEMPDIR", "outputs", "output_dir", Path("outputs")),
    ("JUDGE_MODEL", "some/judge", "judge.model", "some/judge"),
    ("NUM_WORKERS", "3", "concurrency.num_workers", 3),
    ("MAX_CONCURRENT_MODELS", "2", "concurrency.max_concurrent_models", 2),
    ("BUDGET_USD", "0.5", "budget.usd_per_run", 0.5),
    ("BUDGET_USD_PER_MODEL", "0.5", "budget.usd_per_model", 0.5),
    ("BUDGET_USD_PER_DAY", "0.5", "budget.usd_per_day", 0.5),
    ("HF_ENDPOINT", "http://127.0.0.1:1/", "hub_endpoint", "http://127.0.0.1:1"),
]


@pytest.mark.parametrize(("variable", "text", "field", "expected"), EFFECTS)
def test_a_variable_overrides_its_field_and_nothing_else(
    tmp_path: Path, variable: str, text: str, field: str, expected: object
) -> None:
    settings_in(
        tmp_path,
        experiments={"default": {}, "warm": {"temperature": 1}},
        deployments={"prod": {}},
    )

    before, after = load(tmp_path), load(tmp_path, **{variable: text})

    value = attrgetter(field)
    assert value(after) == expected != value(before)
    others = {effect[2] for effect in EFFECTS} - {field}
    assert [attrgetter(other)(after) for other in others] == [
        attrgetter(other)(before) for other in others
    ]


def test_every_variable_is_in_the_table_above() -> None:
    assert {effect[0] for effect in EFFECTS} == set(VARIABLES)


@pytest.mark.parametrize(
    ("changes", "where", "allowed"),
    [
        ({"colour": "red"}, "colour", "no such setting"),
        ({"plan": {"colour": "red"}}, "plan.colour", "no such setting"),
        ({"concurrency": {"num_workers": 0}}, "concurrency.num_workers", "or equal to 1, got 0"),
        ({"judge": {"num_workers": 0}}, "judge.num_workers", "or equal to 1, got 0"),
        ({"plan": {"test_filter": "("}}, "plan.test_filter", "must be a regular expression"),
        ({"experiment": "hot"}, "experiment", "must be one of: default, no_guidelines, web_search"),
        ({"suites": []}, "suites", "at least 1"),
        ({"suites": [{"name": "s"}]}, "suites.0", "either `path` or `hub`"),
        ({"suites": [{"name": "s", "path": "p", "hub": HUB}]}, "suites.0", "`path` or `hub`"),
        ({"suites": [{"name": "s", "path": "p"}] * 2}, "suites", "name 's' is used twice"),
        ({"gateways": [{"name": "g", "kind": "demo"}] * 2}, "gateways", "'g' is used twice"),
        ({"gateways": [{"name": "g", "kind": "x"}]}, "gateways.0.kind", "'zenmux', 'openrouter'"),
        (
            {"gateways": [{"name": "g", "kind": "openai", "base_url": "nowhere"}]},
            "gateways.0.base_url",
            "a valid URL",
        ),
        (
            {"gateways": [{"name": "g", "kind": "openai", "base_url": "ftp://host"}]},
            "gateways.0.base_url",
            "'http' or 'https'",
        ),
        ({"judge": {"model": "no-vendor"}}, "judge.model", "match pattern"),
        ({"judge": {"also": ["no-vendor"]}}, "judge.also.0", "match pattern"),
        ({"judge": {"also": ["demo/judge"]}}, "judge.also", "'demo/judge' is named twice"),
        ({"judge": {"also": ["a/b", "a/b"]}}, "judge.also", "the judge 'a/b' is named twice"),
        ({"judge": {"rules": "last"}}, "judge.rules", "'off', 'first' or 'only'"),
        ({"requests": {"timeout_s": 0}}, "requests.timeout_s", "greater than 0"),
        ({"plan": 3}, "plan", "valid dictionary"),
    ],
)
def test_a_wrong_value_in_the_file_is_named_in_one_sentence(
    tmp_path: Path, changes: dict[str, Any], where: str, allowed: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        settings_in(tmp_path, **changes)

    sentence = str(caught.value)
    assert sentence.startswith(f"{SETTINGS_FILE}: {where}: ")
    assert allowed in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("judge", "asked"),
    [
        ({}, ("demo/judge",)),
        ({"also": ["a/b", "c/d"]}, ("demo/judge", "a/b", "c/d")),
        ({"also": ["a/b"], "rules": "first"}, ("demo/judge", "a/b")),
        ({"also": ["a/b"], "rules": "only"}, ()),
    ],
)
def test_the_judges_are_asked_in_their_order_and_none_if_the_rules_judge_alone(
    tmp_path: Path, judge: dict[str, Any], asked: tuple[str, ...]
) -> None:
    assert settings_in(tmp_path, judge=judge).judge.models == asked


@pytest.mark.parametrize(
    ("variable", "text", "allowed"),
    [
        ("MAX_SAMPLES", "abc", "a valid integer"),
        ("MAX_SAMPLES", "0", "greater than or equal to 1"),
        ("TEXT_ONLY", "perhaps", "a valid boolean"),
        ("BUDGET_USD", "0", "greater than 0"),
        ("BUDGET_USD", "nan", "finite number"),
        ("NUM_WORKERS", "-1", "greater than or equal to 1"),
        ("TEST_FILTER", "(", "must be a regular expression"),
        ("EVALS_EXPERIMENT", "hot", "must be one of: cold, default"),
        ("EVALS_EXPERIMENT", "so hot", "match pattern"),
        ("JUDGE_MODEL", "no-vendor", "match pattern"),
    ],
)
@pytest.mark.parametrize("dotenv", [False, True])
def test_a_wrong_value_in_a_variable_is_named_in_one_sentence(
    tmp_path: Path, variable: str, text: str, allowed: str, dotenv: bool
) -> None:
    settings_in(tmp_path, experiments={"default": {}, "cold": {}})
    (tmp_path / ".env").write_text(f"{variable}='{text}'\n" if dotenv else "")

    sentence = complaint(tmp_path, **({} if dotenv else {variable: text}))

    assert sentence.startswith(f"environment variable {variable}: ")
    assert allowed in sentence
    assert f"got '{text}'." in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(None, "there is no such file", id="no file"),
        pytest.param(b"[[[", "can not be read as TOML", id="broken"),
        pytest.param(b"\xff\xfe", "can not be read as TOML", id="not UTF-8"),
        pytest.param(f"key = {KEY}".encode(), "can not be read as TOML", id="a key unquoted"),
    ],
)
def test_a_file_that_can_not_be_read_is_named_in_one_sentence(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / SETTINGS_FILE).write_bytes(content)

    sentence = complaint(tmp_path)

    assert sentence.startswith(f"{SETTINGS_FILE}: {said}")
    assert "\n" not in sentence
    assert KEY not in sentence


def test_keys_come_from_the_environment_and_dotenv_only(tmp_path: Path) -> None:
    gateway = {"name": "mine", "kind": "openai", "api_key_variable": "MY_KEY"}
    settings_in(tmp_path, gateways=[gateway])
    (tmp_path / ".env").write_text("OPENROUTER_API_KEY=from-dotenv\n")

    settings = load(tmp_path, MY_KEY=f" {KEY} ", HF_TOKEN="hf-token", OTHER_KEY="not asked for")

    found = {name: key.get_secret_value() for name, key in settings.keys.items()}
    assert found == {"MY_KEY": KEY, "OPENROUTER_API_KEY": "from-dotenv", "HF_TOKEN": "hf-token"}
    assert settings.key(settings.gateway("mine").key_variable) == settings.keys["MY_KEY"]
    assert settings.key("ZENMUX_API_KEY") is settings.key(None) is None


def test_keys_are_in_no_text_that_is_made_of_the_settings(tmp_path: Path) -> None:
    settings_in(tmp_path)

    settings = load(tmp_path, ZENMUX_API_KEY=KEY)

    shown = [repr(settings), str(settings), settings.model_dump_json(), str(settings.model_dump())]
    assert [KEY in text for text in shown] == [False] * 4
    assert KEY not in complaint(tmp_path, ZENMUX_API_KEY=KEY, MAX_SAMPLES="abc")


@pytest.mark.parametrize("dotenv", [False, True])
def test_the_webhook_is_a_secret_like_a_key(tmp_path: Path, dotenv: bool) -> None:
    settings_in(tmp_path)
    (tmp_path / ".env").write_text(f"EVALS_WEBHOOK_URL={HOOK}\n" if dotenv else "")

    settings = load(tmp_path, **({} if dotenv else {"EVALS_WEBHOOK_URL": f" {HOOK} "}))

    assert settings.webhook is not None and settings.webhook.get_secret_value() == HOOK
    assert settings.redact(f"POST {HOOK}?a=b") == "POST [EVALS_WEBHOOK_URL]?a=b"
    shown = [repr(settings), settings.model_dump_json(), str(settings.model_dump())]
    assert [HOOK in text for text in shown] == [False] * 3
    assert settings.overridden({"data_dir": "elsewhere"}).webhook == settings.webhook


@pytest.mark.parametrize("blank", [{}, {"EVALS_WEBHOOK_URL": " "}])
def test_without_a_webhook_there_is_none(tmp_path: Path, blank: dict[str, str]) -> None:
    settings_in(tmp_path)

    assert load(tmp_path, **blank).webhook is None


@pytest.mark.parametrize(
    "wrong", [HOOK.removeprefix("https://"), HOOK.replace("https", "ftp"), "https://", "http:/x y"]
)
def test_a_webhook_that_is_no_address_is_refused_and_not_repeated(
    tmp_path: Path, wrong: str
) -> None:
    settings_in(tmp_path)

    sentence = complaint(tmp_path, EVALS_WEBHOOK_URL=wrong)

    assert sentence == (
        "environment variable EVALS_WEBHOOK_URL: must be an address that begins with https:// "
        "(or http://)."
    )


def test_a_table_that_is_wrong_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"gateways\.0\.kind: Field required") as caught:
        settings_in(tmp_path, gateways=[{"name": "mine", "api_key_variable": KEY}])

    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        (KEY, f"your key {KEY}, yes {KEY}", "your key [HF_TOKEN], yes [HF_TOKEN]"),
        ("sixsix", "it is sixsix", "it is [HF_TOKEN]"),
        ("EMPTY", "the set is EMPTY", "the set is EMPTY"),
        ("none", "none of these", "none of these"),
        (KEY, "nothing secret", "nothing secret"),
    ],
)
def test_keys_are_cut_out_of_a_text_but_placeholders_stay(
    tmp_path: Path, key: str, text: str, expected: str
) -> None:
    settings_in(tmp_path)

    settings = load(tmp_path, HF_TOKEN=key)

    assert settings.redact(text) == expected


def test_a_launch_changes_what_it_names_and_keeps_the_rest(tmp_path: Path) -> None:
    settings_in(tmp_path, plan={"max_samples": 5, "categories": ["Math"]})
    before = load(tmp_path, HF_TOKEN=KEY)

    after = before.overridden({"plan": {"max_samples": 2}, "data_dir": "elsewhere"})

    assert (after.plan.max_samples, after.plan.categories) == (2, ("Math",))
    assert after.data == tmp_path / "elsewhere"
    assert after.keys["HF_TOKEN"].get_secret_value() == KEY
    assert before.plan.max_samples == 5
    kept = {"plan", "data_dir"}
    assert after.model_dump(exclude=kept) == before.model_dump(exclude=kept)


@pytest.mark.parametrize(
    ("changes", "where", "allowed"),
    [
        ({"plan": {"max_samples": 0}}, "plan.max_samples", "greater than or equal to 1"),
        ({"plan": {"test_filter": "("}}, "plan.test_filter", "a regular expression"),
        ({"plan": {"colour": "red"}}, "plan.colour", "no such setting"),
        ({"colour": "red"}, "colour", "no such setting"),
        ({"experiment": "hot"}, "experiment", "must be one of: default"),
    ],
)
def test_a_launch_is_checked_like_the_file(
    tmp_path: Path, changes: dict[str, Any], where: str, allowed: str
) -> None:
    settings = settings_in(tmp_path)

    with pytest.raises(SettingsError) as caught:
        settings.overridden(changes)

    assert str(caught.value).startswith(f"run config: {where}: ")
    assert allowed in str(caught.value)


def test_an_unknown_gateway_is_named(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)

    with pytest.raises(SettingsError, match="no gateway is named 'other'"):
        settings.gateway("other")


def test_an_experiment_of_ones_own_leaves_the_default_one_as_it_is(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, experiments={"warm": {"temperature": 1}})

    assert settings.experiments["default"] == Experiment()
    assert settings.experiments["warm"].temperature == 1


def test_overrides_of_a_provider_keep_those_of_all_also_in_a_launch(tmp_path: Path) -> None:
    overrides = {
        "a/b": {"max_tokens": 7, "extra": {"seed": 1}},
        "a/b:c": {"streaming": False, "extra": {"top_p": 0.5}},
    }
    settings = settings_in(tmp_path, overrides=overrides)
    model = a_model("a/b:c").model_copy(update={"name": "b", "provider": "c"})

    for one in (settings, settings.overridden({"plan": {"max_samples": 1}})):
        found = one.override(model)

        assert (found.max_tokens, found.streaming) == (7, False)
        assert found.extra == {"seed": 1, "top_p": 0.5}
