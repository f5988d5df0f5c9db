"""An exam question as chat messages, in the form that the model can take."""

from pydantic import JsonValue

from eval_pipeline.records.item import ExamQuestion
from eval_pipeline.records.model import Model


def question_messages(
    question: ExamQuestion, model: Model, system_prompt: str, guidelines: str | None = None
) -> tuple[dict[str, JsonValue], ...]:
    """System prompt, guidelines if there are any, and the question as the last of all.

    A model without a system role reads everything in one message.
    """
    before = (guidelines, "The question:") if guidelines else ()
    asked = "\n\n".join((*before, question.question))
    if model.system_role:
        return (
            {"role": "system", "content": system_prompt},
            {"role": "user", "content": _content(asked, question.image)},
        )
    return ({"role": "user", "content": _content(f"{system_prompt}\n\n{asked}", question.image)},)


def _content(text: str, image: str | None) -> JsonValue:
    if image is None:
        return text
    return [
        {"type": "text", "text": text},
        {"type": "image_url", "image_url": {"url": image}},
    ]
