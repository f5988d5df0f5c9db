"""Tokens: secrets are shown once and kept nowhere; commands make, list and revoke them."""

import json
from datetime import timedelta
from pathlib import Path
from threading import Thread

import pytest

from eval_pipeline.journal import tokens as module
from eval_pipeline.journal.tokens import PREFIX, TokenError, Tokens, TokenScope
from eval_pipeline.records.base import now
from eval_pipeline_tests.builders import settings_in
from eval_pipeline_tests.project import call

READ, WRITE, PRODUCTION = TokenScope


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens(tmp_path / "data" / "tokens.json")


def test_only_a_hash_of_a_secret_is_kept_in_a_file_that_nobody_else_can_read(
    tokens: Tokens,
) -> None:
    secret = tokens.create("ci", [WRITE, READ])

    shown = secret.get_secret_value()
    assert shown.startswith(PREFIX)
    assert shown not in tokens.path.read_text()
    assert tokens.path.stat().st_mode & 0o777 == 0o600
    assert shown not in f"{secret!r} {tokens!r} {tokens.list()!r}"
    (kept,) = tokens.list()
    assert (kept.name, kept.scopes, kept.last_used_at) == ("ci", (READ, WRITE), None)


def test_a_secret_is_known_until_its_token_is_revoked(tokens: Tokens) -> None:
    secret, other = (tokens.create(name, [READ]) for name in ("ci", "laptop"))

    found = tokens.check(secret.get_secret_value())
    tokens.revoke("ci")

    assert found is not None
    assert found.name == "ci"
    assert tokens.check(secret.get_secret_value()) is None
    assert tokens.check(other.get_secret_value()) is not None


@pytest.mark.parametrize("secret", ["", PREFIX, "evals_\ud800", "x" * 1_000_000, "evals_ä\x00"])
def test_what_is_no_secret_opens_nothing(tokens: Tokens, secret: str) -> None:
    tokens.create("ci", [READ])

    assert tokens.check(secret) is None


def test_that_a_token_is_used_is_noted_once_a_minute(
    tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, begin = tokens.create("ci", [READ]).get_secret_value(), now()
    used = []
    for seconds in (0, 59, 61):
        monkeypatch.setattr(module, "now", lambda at=begin + timedelta(seconds=seconds): at)
        tokens.check(secret)
        used.append(tokens.list()[0].last_used_at)

    assert used == [begin, begin, begin + timedelta(seconds=61)]


@pytest.mark.parametrize(
    ("name", "scopes", "words"),
    [
        ("ci", [READ], "already"),
        ("../ci", [READ], "letters"),
        ("", [READ], "letters"),
        ("n" * 65, [READ], "letters"),
        ("laptop", [], "--scope"),
    ],
)
def test_a_token_has_a_name_of_its_own_and_a_purpose(
    tokens: Tokens, name: str, scopes: list[TokenScope], words: str
) -> None:
    tokens.create("ci", [READ])

    with pytest.raises(TokenError, match=words):
        tokens.create(name, scopes)

    assert [one.name for one in tokens.list()] == ["ci"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"tokens": [{"name": "ci"}]}', "\x00"])
def test_a_damaged_file_is_said_to_be_one_and_left_alone(tokens: Tokens, content: str) -> None:
    tokens.path.parent.mkdir()
    tokens.path.write_text(content)

    for work in (lambda: tokens.check("evals_x"), lambda: tokens.create("ci", [READ])):
        with pytest.raises(TokenError, match=r"tokens\.json can not be read as tokens"):
            work()

    assert tokens.path.read_text() == content


def test_tokens_that_are_made_at_the_same_time_are_all_kept(tokens: Tokens) -> None:
    threads = [Thread(target=tokens.create, args=(f"t{n}", [READ])) for n in range(8)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(one.name for one in tokens.list()) == [f"t{n}" for n in range(8)]


def test_the_commands_make_list_and_revoke_tokens(tmp_path: Path) -> None:
    tokens = Tokens(settings_in(tmp_path).tokens)

    made = call(tmp_path, "evals tokens create ci --scope write --scope production")
    listed = call(tmp_path, "evals tokens list --json")
    table = call(tmp_path, "evals tokens list")
    revoked = call(tmp_path, "evals tokens revoke ci")

    secret = made.stdout.strip()
    assert secret.startswith(PREFIX)
    assert "shown once" in made.stderr
    (one,) = json.loads(listed.stdout)
    assert (one["name"], one["scopes"]) == ("ci", ["write", "production"])
    assert "sha256" not in one
    assert "never" in table.stdout
    assert secret not in listed.stdout + table.stdout
    assert revoked.returncode == 0
    assert tokens.list() == []
    assert "no token yet" in call(tmp_path, "evals tokens list").stdout


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("create ci --scope everything", "read, write, production"),
        ("create ci", "Say what the token is for"),
        ("revoke ci", "there are: none"),
    ],
)
def test_wrong_use_is_told_in_a_sentence(tmp_path: Path, command: str, words: str) -> None:
    settings_in(tmp_path)

    done = call(tmp_path, f"evals tokens {command}")

    assert done.returncode == 2
    assert words in done.stderr
