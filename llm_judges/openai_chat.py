"""Chat completions of OpenAI and of the many servers that speak its protocol."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from logging import getLogger
from typing import Any

from llm_judges.failures import CallError, call_error, require, status_error
from llm_judges.generator import REPLY_LIMITS, Call, Reply, Request
from metrics_core.errors import InputError

_logger = getLogger(__name__)

# What 400s call the parameter, in the servers' own words
_FORMAT_WORDS = ("response_format", "response format", "json_schema", "json_object", "guided_json", "structured output")
_UNSUPPORTED_WORDS = ("unsupported", "not support", "unrecognized", "unknown", "not permitted", "not allowed")


@dataclass(frozen=True, slots=True)
class EnvVar:
    """A secret that is read from an environment variable when it is needed, and is never written."""

    name: str

    def resolve_value(self) -> str:
        """The variable's value.

        Raises:
            InputError: it is not set.
        """
        value = os.environ.get(self.name)
        if not value:
            raise InputError(
                f"the environment variable {self.name} is not set; it must hold the API key "
                "(any word will do for a server that asks for none)"
            )
        return value

    def to_dict(self) -> dict[str, Any]:
        """In the form of Haystack's Secret."""
        return {"type": "env_var", "env_vars": [self.name], "strict": True}


class OpenAIChatGenerator:
    """Asks a server with OpenAI's chat completions: OpenAI itself, vLLM, Ollama, Azure, llama.cpp and others.

        OpenAIChatGenerator("gpt-5-mini")
        OpenAIChatGenerator("Qwen/Qwen3-8B", api_key="none", api_base_url="http://localhost:8000/v1")  # vLLM
        OpenAIChatGenerator("qwen3", api_key="none", api_base_url="http://localhost:11434/v1")  # Ollama
        OpenAIChatGenerator(
            "<deployment>", EnvVar("AZURE_OPENAI_API_KEY"), "https://<resource>.openai.azure.com/openai/v1/"
        )

    The reply's format is enforced by the server where it can be: a JSON schema if the request has one, else any JSON
    object, else nothing but the prompt. A parameter that the server rejects (`seed`, `temperature`, …) is left out.
    Both are remembered for the run.

    Args:
        model: its name.
        api_key: an EnvVar, a secret of Haystack's, or the key itself, which `to_dict` leaves out.
        api_base_url: None is OpenAI's.
        generation_kwargs: parameters of the request, such as `{"temperature": 0, "max_completion_tokens": 500}`.
        timeout: seconds a call may take.
    """

    def __init__(
        self,
        model: str = "gpt-5-mini",
        api_key: Any = EnvVar("OPENAI_API_KEY"),
        api_base_url: str | None = None,
        generation_kwargs: Mapping[str, Any] | None = None,
        *,
        timeout: float = 120.0,
    ) -> None:
        self.model = model
        self._api_key = api_key
        self.api_base_url = api_base_url
        self.generation_kwargs = dict(generation_kwargs or {})
        self.timeout = timeout
        self._certificates: Any = None

    def warm_up(self) -> None:
        """Makes sure that there is a key, and the client's package.

        Raises:
            InputError: the key's environment variable is not set.
            ImportError: openai is not installed.
        """
        self._key()
        require("openai")

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Call]:
        """Opens a client in the running event loop, and closes it."""
        openai = require("openai")
        key = self._key()
        if self._certificates is None:
            self._certificates = require("httpx2").create_ssl_context()  # 50 ms, which a run need not pay again
        http_client = openai.DefaultAsyncHttpx2Client(verify=self._certificates)
        async with openai.AsyncOpenAI(
            api_key=key, base_url=self.api_base_url, timeout=self.timeout, max_retries=0, http_client=http_client
        ) as client:
            yield _Session(self, client, key)

    def _key(self) -> str:
        return self._api_key if isinstance(self._api_key, str) else str(self._api_key.resolve_value())

    def to_dict(self) -> dict[str, Any]:
        """{"type": …, "init_parameters": …}; of the key no more than the name of its variable."""
        return {
            "type": f"{type(self).__module__}.{type(self).__qualname__}",
            "init_parameters": {
                "model": self.model,
                "api_key": None if isinstance(self._api_key, str) else self._api_key.to_dict(),
                "api_base_url": self.api_base_url,
                "generation_kwargs": self.generation_kwargs,
                "timeout": self.timeout,
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> OpenAIChatGenerator:
        """The generator that `to_dict` described; a key that was given itself comes from OPENAI_API_KEY."""
        parameters = dict(data["init_parameters"])
        secret = parameters.pop("api_key", None)
        if secret is not None:
            parameters["api_key"] = EnvVar(secret["env_vars"][0])
        return cls(**parameters)

    def __repr__(self) -> str:
        return f"OpenAIChatGenerator({self.model!r}, api_base_url={self.api_base_url!r})"


class _Session:
    """A run's calls: what the server rejected in one is left out of the next."""

    def __init__(self, generator: OpenAIChatGenerator, client: Any, key: str) -> None:
        self._client = client
        self._response = require("httpx2").Response
        self._key = key
        self._parameters: dict[str, Any] = {"model": generator.model} | generator.generation_kwargs
        configured = self._parameters.pop("response_format", {"type": "json_object"})
        self._formats: list[dict[str, Any] | None] = [configured, None]
        self._schemas = configured == {"type": "json_object"}  # a schema goes before JSON mode, not before another

    async def __call__(self, request: Request) -> Reply:
        while True:
            response_format, parameters = self._format(request.schema), dict(self._parameters)
            sent = parameters if response_format is None else parameters | {"response_format": response_format}
            try:
                # Not chat.completions.create: to check what we send and to type what comes costs 1 ms of CPU a call,
                # and the raw text is needed, whatever it is
                response = await self._client.post(
                    "/chat/completions", body={"messages": _messages(request), **sent}, cast_to=self._response
                )
            except require("openai").OpenAIError as error:
                failure = call_error(error)
                if getattr(error, "status_code", None) in {400, 422} and failure.reason == "transport":
                    # Calls that were under way together are rejected together: the first one takes it out
                    changed = self._parameters != parameters or self._format(request.schema) != response_format
                    if changed or self._take_out(error, parameters, response_format):
                        continue
                raise self._without_key(failure) from None  # its request has the key
            return self._read(response.text)

    def _format(self, schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
        if schema is None or not self._schemas:
            return self._formats[0]
        return {"type": "json_schema", "json_schema": {"name": "reply", "schema": _strict(schema), "strict": True}}

    def _take_out(self, error: Any, parameters: Mapping[str, Any], response_format: dict[str, Any] | None) -> bool:
        """Takes out what a 400 says is not supported; whether there was such a thing."""
        message = str(error).lower()
        named = getattr(error, "param", None)
        if response_format is not None and (
            str(named).startswith("response_format") or any(word in message for word in _FORMAT_WORDS)
        ):
            if response_format["type"] == "json_schema" and self._schemas:
                self._schemas = False
            else:
                self._formats.pop(0)
            _logger.warning("the server rejects response_format %s; going on without", response_format["type"])
            return True
        if not any(word in message for word in _UNSUPPORTED_WORDS):  # its code is part of the message
            return False
        names = [name for name in parameters if name != "model"]
        rejected = named if named in names else next((name for name in names if _mentions(message, name)), None)
        if rejected is None:
            return False
        value = self._parameters.pop(rejected)
        if rejected in REPLY_LIMITS:  # a limit keeps the budget: it may have its other name, but not go
            other = REPLY_LIMITS[1 - REPLY_LIMITS.index(rejected)]
            if other not in message:
                self._parameters[rejected] = value
                return False
            self._parameters[other] = value
        _logger.warning("the server rejects the parameter %s; going on without", rejected)
        return True

    def _read(self, body: str) -> Reply:
        try:
            data = json.loads(body)
        except ValueError:
            raise CallError(self._hide(f"the server sent no JSON: {body[:200]!r}"), retry=True) from None
        error = data.get("error") if isinstance(data, dict) else None
        if isinstance(error, dict):  # with status 200, as some routers do
            code = error.get("code")
            status = code if isinstance(code, int) else 500
            codes = {str(code), str(error.get("type"))}
            raise self._without_key(status_error(status, codes, str(error.get("message", error)), {}))
        try:
            choice = data["choices"][0]
            message = choice["message"]
            text, refusal = message.get("content"), message.get("refusal")
        except (KeyError, IndexError, TypeError, AttributeError):
            raise CallError(self._hide(f"the server sent no choice: {body[:200]!r}"), retry=True) from None
        meta = {"model": data.get("model"), "index": 0, "finish_reason": choice.get("finish_reason")}
        return Reply(text, refusal, meta | {"usage": data.get("usage") or {}})

    def _hide(self, message: str) -> str:
        return message.replace(self._key, "***") if len(self._key) > 4 else message  # not the "none" of local servers

    def _without_key(self, failure: CallError) -> CallError:
        failure.args = (self._hide(str(failure)),)
        return failure


def _messages(request: Request) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.text} for message in request.messages]


def _mentions(message: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", message) is not None


def _strict(schema: Any) -> Any:
    """The schema as OpenAI's strict mode wants it: of each object all properties, and no others."""
    if isinstance(schema, list):
        return [_strict(inner) for inner in schema]
    if not isinstance(schema, Mapping):
        return schema
    strict = {name: _strict(inner) for name, inner in schema.items() if name != "default"}
    if isinstance(schema.get("properties"), Mapping):
        # by name: a property may itself be called "default"
        strict["properties"] = {name: _strict(inner) for name, inner in schema["properties"].items()}
        strict |= {"required": list(schema["properties"]), "additionalProperties": False}
    return strict
