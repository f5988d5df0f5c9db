"""What every test gets: an environment without keys, and nobody's settings."""

import os
from collections.abc import Iterator

import pytest

from eval_pipeline.environment import VARIABLES
from eval_pipeline.settings import KEY_VARIABLES

UNWANTED = {*VARIABLES, *filter(None, KEY_VARIABLES.values()), "HF_TOKEN", "HF_ENDPOINT"}


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A developer's keys and filters must not decide what a test does."""
    for name in {*UNWANTED, "EVALS_SETTINGS", "DAGSTER_HOME", "DAGSTER_MODULE_NAME"}:
        monkeypatch.delenv(name, raising=False)
    assert not UNWANTED & set(os.environ)
    yield
