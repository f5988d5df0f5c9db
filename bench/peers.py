"""inspect_ai and lm-evaluation-harness on the same questions, through their own commands."""

import functools
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.load import MODEL, Load
from bench.measuring import Taken, measured
from bench.options import Options
from bench.project import environment, write_questions
from bench.serving import LoadServer

LONGEST_S = 900.0
_INSPECT_TASK = """
import json
from pathlib import Path
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.solver import generate


@task
def bench():
    rows = map(json.loads, Path("questions.jsonl").read_text("utf-8").splitlines())
    samples = [Sample(id=row["id"], input=row["question"], target=row["answer"]) for row in rows]
    return Task(dataset=MemoryDataset(samples), solver=[generate()])
"""
_LM_EVAL_TASK = """
task: bench
dataset_path: json
dataset_kwargs: {data_files: {test: questions.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["<end>"]}
metric_list: [{metric: exact_match}]
"""


@dataclass(frozen=True)
class Peer:
    """How one of them is called; its task file lies beside the questions."""

    module: str
    task_file: str
    task: str

    def words(self, load: Load, base_url: str) -> list[str]:
        at_once = str(load.at_once)
        if self.module == "inspect_ai":
            words = f"eval task.py --model openai-api/bench/{MODEL} --display none --log-dir logs"
            return [*words.split(), "--max-connections", at_once, "--max-samples", at_once]
        settings = f"model={MODEL},base_url={base_url}/chat/completions,num_concurrent={at_once}"
        words = "--model local-chat-completions --apply_chat_template --tasks bench"
        return [*words.split(), "--include_path", ".", "--model_args", settings]

    def variables(self, base_url: str, folder: Path) -> dict[str, str]:
        """They refuse to start without a key; the load server looks at none."""
        ours = {"BENCH_API_KEY": "none", "BENCH_BASE_URL": base_url, "OPENAI_API_KEY": "none"}
        offline = {"HF_HOME": str(folder / "hub"), "HF_HUB_OFFLINE": "1"}
        return {**ours, **offline, "XDG_DATA_HOME": str(folder), "HOME": str(folder)}


PEERS: Mapping[str, Peer] = {
    "inspect_ai, whole command": Peer("inspect_ai", "task.py", _INSPECT_TASK),
    "lm-eval, whole command": Peer("lm_eval", "bench.yaml", _LM_EVAL_TASK),
}


@functools.cache
def importable(python: str, module: str) -> bool:
    """Whether that Python has the package; asked of it, not of us."""
    code = f"import importlib.util as u; raise SystemExit(u.find_spec('{module}') is None)"
    return subprocess.run([python, "-c", code], check=False).returncode == 0


def measure(peer: Peer, python: str, load: Load, server: LoadServer, options: Options) -> Taken:
    """The peer's command from process start to exit."""
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        write_questions(folder / "questions.jsonl", load.questions)
        (folder / peer.task_file).write_text(peer.task, "utf-8")
        command: Sequence[str] = [
            python,
            "-m",
            peer.module,
            *peer.words(load, server.base_url),
        ]
        env = environment(**peer.variables(server.base_url, folder))
        del env["PYTHONPATH"]
        return measured(command, folder, env, LONGEST_S)
