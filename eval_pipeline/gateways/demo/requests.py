"""Requests to the simulated gateway: those of every dialect are read into one record."""

import hashlib
from functools import cached_property
from typing import Annotated, Literal

from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    Field,
    JsonValue,
    model_validator,
)
from pydantic_core import to_json

from eval_pipeline.gateways.demo.replies import Mind, tokens

_TOKENS_PER_IMAGE = 85


class _Typed(BaseModel, frozen=True):
    type: str = "custom"


class _Part(BaseModel, frozen=True):
    """A part of a message, in the words of chat completions."""

    type: Literal["text", "image_url"]
    text: str = ""
    image_url: JsonValue = None

    @model_validator(mode="before")
    @classmethod
    def _translate(cls, part: object) -> object:
        """Accept the words of the other dialects too."""
        match part:
            case {"type": "input_text" | "output_text", "text": text}:
                return {"type": "text", "text": text}
            case {"type": "input_image", "image_url": address}:
                return {"type": "image_url", "image_url": address}
            case {"type": "image", "source": {"type": "url", "url": address}}:
                return {"type": "image_url", "image_url": {"url": address}}
            case {"type": "image", "source": {"media_type": media_type, "data": data}}:
                address = f"data:{media_type};base64,{data}"
                return {"type": "image_url", "image_url": {"url": address}}
        return part


class _Message(BaseModel, frozen=True):
    role: str
    content: str | tuple[_Part, ...] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, tuple):
            return "\n\n".join(part.text for part in self.content if part.type == "text")
        return self.content or ""

    @property
    def images(self) -> int:
        parts = self.content if isinstance(self.content, tuple) else ()
        return sum(part.type == "image_url" for part in parts)


class Request(BaseModel, frozen=True):
    """A request, as far as it makes a difference here; as it is, one of chat completions."""

    model: str
    messages: tuple[_Message, ...] = Field(min_length=1)
    instructions: str | tuple[_Part, ...] | None = None
    stream: bool = False
    stream_options: dict[str, JsonValue] | None = None
    temperature: float | None = None
    max_tokens: int | None = Field(
        None,
        ge=1,
        validation_alias=AliasChoices("max_tokens", "max_completion_tokens", "max_output_tokens"),
    )
    reply_format: _Typed | None = Field(
        None, validation_alias=AliasChoices("response_format", AliasPath("text", "format"))
    )
    tools: tuple[_Typed, ...] = ()
    tool_choice: JsonValue = None
    web_search_options: JsonValue = None
    seed: int | None = None

    @property
    def tool(self) -> str | None:
        """Return the function that has to be called."""
        match self.tool_choice:
            case {"function": {"name": str(name)}} | {"name": str(name)}:
                return name
        return None

    @property
    def wanted(self) -> str:
        """Return the format that the reply is held to, in the words of the pipeline."""
        if self.tool is not None:
            return "tool"
        return "text" if self.reply_format is None else self.reply_format.type

    @cached_property
    def conversation(self) -> tuple[_Message, ...]:
        """Return the messages, after instructions that are apart from them."""
        if not self.instructions:
            return self.messages
        return (_Message(role="system", content=self.instructions), *self.messages)

    @property
    def asked(self) -> str:
        return next((said.text for said in reversed(self.messages) if said.role == "user"), "")

    @property
    def images(self) -> int:
        return sum(said.images for said in self.messages)

    @property
    def prompt_tokens(self) -> int:
        texts = sum(tokens(said.text) for said in self.conversation)
        return texts + _TOKENS_PER_IMAGE * self.images

    @cached_property
    def content_hash(self) -> str:
        content = {"model": self.model, "messages": self.conversation}
        seed = {} if self.seed is None else {"seed": self.seed}
        return hashlib.sha256(to_json({**content, **seed})).hexdigest()[:16]

    def unsupported(self, mind: Mind) -> str | None:
        """Return the parameter of this request that the mind does not take."""
        roles = {said.role for said in self.conversation}
        if not mind.system_role and {"system", "developer"} & roles:
            return "messages.role"
        if not mind.temperature and self.temperature is not None:
            return "temperature"
        searches = any(tool.type.startswith("web_search") for tool in self.tools)
        if not mind.web_search and (searches or self.web_search_options is not None):
            return "web_search_options"
        return "messages.content" if self.images and "image" not in mind.modalities else None


def _one_message(said: object) -> object:
    return [{"role": "user", "content": said}] if isinstance(said, str) else said


class ResponsesRequest(Request):
    """A request of the responses API."""

    messages: Annotated[tuple[_Message, ...], BeforeValidator(_one_message)] = Field(
        min_length=1, validation_alias="input"
    )


class _Turn(_Message):
    role: Literal["user", "assistant"]


class MessagesRequest(Request):
    """A request of Anthropic's messages API."""

    messages: tuple[_Turn, ...] = Field(min_length=1)
    instructions: str | tuple[_Part, ...] | None = Field(None, validation_alias="system")
    max_tokens: int = Field(ge=1)
