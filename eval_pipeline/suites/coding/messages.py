"""A coding task as chat messages, in the form that the model can take."""

from pathlib import Path

from pydantic import JsonValue

from eval_pipeline.records.coding import CodingTask
from eval_pipeline.records.model import Model

PROJECT_FORMAT = "convex_project"
"""How whole projects are to be written, which a checkout of convex-evals asks for."""
PROMPTS = Path(__file__).parents[2] / "prompts"


def output_format(toolchain: str) -> str:
    """How an answer is to be written, and how it will be checked."""
    return (PROMPTS / f"coding_format_{toolchain}.txt").read_text("utf-8").strip()


def task_messages(
    task: CodingTask,
    model: Model,
    *,
    system_prompt: str,
    output_format: str,
    guidelines: str | None,
) -> tuple[dict[str, JsonValue], ...]:
    """System prompt, form of the reply and guidelines, and the task itself as the last of all.

    A model without a system role reads everything in one message.
    """
    asked = [output_format, guidelines or "", "The task:"]
    if model.system_role:
        return (
            {"role": "system", "content": system_prompt},
            {"role": "user", "content": _joined(asked, task)},
        )
    return ({"role": "user", "content": _joined([system_prompt, *asked], task)},)


def _joined(parts: list[str], task: CodingTask) -> str:
    return "\n\n".join([*(part.strip() for part in parts if part.strip()), task.question])
