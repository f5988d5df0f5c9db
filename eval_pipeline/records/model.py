"""Records of models, their prices and what a gateway lists of them."""

from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, Field, StringConstraints

from eval_pipeline.records.base import Record


def _no_dots_in_a_row(text: str) -> str:
    if ".." in text:
        raise ValueError("must not have two dots in a row")
    return text


# A model id becomes a partition key and a folder name: `vendor/name`, optionally `:provider`.
ModelId = Annotated[
    str,
    StringConstraints(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+@:~-]*(/[A-Za-z0-9_+@:~-][A-Za-z0-9_.+@:~-]*)+$",
        max_length=120,
    ),
    AfterValidator(_no_dots_in_a_row),
]


class Prices(Record):
    """US dollars per token, and per request; None where the gateway does not say."""

    prompt: float | None = Field(default=None, ge=0)
    completion: float | None = Field(default=None, ge=0)
    cached: float | None = Field(default=None, ge=0)
    reasoning: float | None = Field(default=None, ge=0)
    request: float | None = Field(default=None, ge=0)

    @property
    def known(self) -> bool:
        """Whether a cost can be told from them."""
        return self.prompt is not None and self.completion is not None


DialectName = Literal["chat_completions", "responses", "messages"]
"""How a request is written: OpenAI's two ways, or Anthropic's."""


class Model(Record):
    """What can be asked, as its gateway describes it."""

    id: ModelId
    gateway: str
    request_name: str
    vendor: str
    name: str
    provider: str | None = None
    display_name: str
    input_modalities: tuple[str, ...] = ("text",)
    context_length: int | None = None
    max_output_tokens: int | None = None
    prices: Prices = Prices()
    system_role: bool = True
    temperature: bool = True
    json_schema: bool = True
    streaming: bool = True
    web_search: bool = False
    dialect: DialectName = "chat_completions"
    created_at: AwareDatetime | None = None
    simulated: bool = False

    @property
    def unpinned_id(self) -> str:
        """The id without the provider, which names it at all of its providers."""
        return f"{self.vendor}/{self.name}"

    @property
    def sees_images(self) -> bool:
        return "image" in self.input_modalities

    @property
    def reads_text(self) -> bool:
        return "text" in self.input_modalities


class Sighting(Record):
    """A model as its gateway listed it at one moment; `selected` says whether it was to be run.

    `kept_out` says why not, though the settings select it: nobody answered for it. One that is not
    `listed` is as it was before: then the settings no longer had its gateway.
    """

    model: Model
    selected: bool
    kept_out: str | None = None
    listed: bool = True
    seen_at: AwareDatetime
