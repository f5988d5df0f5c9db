"""An exam question as chat messages, in the form that the model can take."""

from pydantic import JsonValue

from eval_pipeline.records import ExamQuestion, Model


def question_messages(
    question: ExamQuestion, model: Model, system_prompt: str
) -> tuple[dict[str, JsonValue], ...]:
    """System prompt and question; a model without a system role reads both in one message."""
    if model.system_role:
        return (
            {"role": "system", "content": system_prompt},
            {"role": "user", "content": _content(question.question, question.image)},
        )
    both = f"{system_prompt}\n\n{question.question}"
    return ({"role": "user", "content": _content(both, question.image)},)


def _content(text: str, image: str | None) -> JsonValue:
    if image is None:
        return text
    return [
        {"type": "text", "text": text},
        {"type": "image_url", "image_url": {"url": image}},
    ]
