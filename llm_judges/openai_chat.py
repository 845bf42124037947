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

from llm_judges.failures import CallError, require, status_error
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
        api_base_url: None is that of the environment variable OPENAI_BASE_URL, or OpenAI's own.
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
        self.api_base_url = api_base_url or os.environ.get("OPENAI_BASE_URL")  # now, so that the dict form has it
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
        http = openai.DefaultAsyncHttpx2Client(verify=self._certificates, timeout=self.timeout)
        async with openai.AsyncOpenAI(api_key=key, base_url=self.api_base_url, http_client=http) as client:
            yield _Session(self, client, http, key)

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

    def __init__(self, generator: OpenAIChatGenerator, client: Any, http: Any, key: str) -> None:
        self._http = http
        self._url = f"{client.base_url}chat/completions"
        self._headers = {name: text for name, text in client.default_headers.items() if isinstance(text, str)}
        self._headers["Authorization"] = f"Bearer {key}"
        self._key = key
        self._parameters: dict[str, Any] = {"model": generator.model} | generator.generation_kwargs
        configured = self._parameters.pop("response_format", {"type": "json_object"})
        self._formats: list[dict[str, Any] | None] = [configured, None]
        self._schemas = configured == {"type": "json_object"}  # a schema goes before JSON mode, not before another

    async def __call__(self, request: Request) -> Reply:
        messages = [{"role": message.role, "content": message.text} for message in request.messages]
        while True:
            response_format, parameters = self._format(request.schema), dict(self._parameters)
            asked = {"messages": messages, **parameters}
            if response_format is not None:
                asked["response_format"] = response_format
            # By the SDK's HTTP client, not its chat.completions.create: to check what is sent and to type what comes
            # costs 2 ms of CPU a call, half of it all, and what comes must survive whatever it is. ASCII: a reply that
            # is sent back may have lone surrogates.
            response = await self._http.post(self._url, headers=self._headers, content=json.dumps(asked).encode())
            data = _json(response.text)
            error = data.get("error") if isinstance(data, dict) else None
            if response.status_code < 400 and error is None:
                return self._reply(data, response.text)
            failure, parameter = self._failure(response, error)
            if response.status_code in {400, 422} and failure.reason == "transport":
                # Calls that were under way together are rejected together: the first one takes it out
                changed = self._parameters != parameters or self._format(request.schema) != response_format
                if changed or self._take_out(str(failure).lower(), parameter, response_format):
                    continue
            raise failure

    def _format(self, schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
        if schema is None or not self._schemas:
            return self._formats[0]
        return {"type": "json_schema", "json_schema": {"name": "reply", "schema": _strict(schema), "strict": True}}

    def _take_out(self, message: str, named: str, response_format: dict[str, Any] | None) -> bool:
        """Takes out what a 400 says is not supported; whether there was such a thing."""
        if response_format is not None and (
            named.startswith("response_format") or any(word in message for word in _FORMAT_WORDS)
        ):
            if response_format["type"] == "json_schema" and self._schemas:
                self._schemas = False
            else:
                self._formats.pop(0)
            _logger.warning("the server rejects response_format %s; going on without", response_format["type"])
            return True
        if not any(word in message for word in _UNSUPPORTED_WORDS):
            return False
        names = [name for name in self._parameters if name != "model"]
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

    def _reply(self, data: Any, body: str) -> Reply:
        try:
            choice = data["choices"][0]
            message = choice["message"]
            text, refusal = message.get("content"), message.get("refusal")
        except (KeyError, IndexError, TypeError, AttributeError):
            text = refusal = message = None
        if message is None or not isinstance(text, (str, type(None))):
            raise CallError(self._hide(f"the server sent no completion: {body[:200]!r}"), retry=True)
        meta = {"model": data.get("model"), "index": 0, "finish_reason": choice.get("finish_reason")}
        return Reply(text, refusal, meta | {"usage": data.get("usage")})

    def _failure(self, response: Any, error: Any) -> tuple[CallError, str]:
        """What a server's error means, and the parameter that it names."""
        status = response.status_code
        stated = error if isinstance(error, dict) else {}
        code = stated.get("code")
        if status < 400:  # routers pass on an error with status 200 and the status as its code
            status = code if isinstance(code, int) else 500
        message = f"{status}: {stated.get('message') or response.text[:500]}"
        if isinstance(code, str):
            message += f" ({code})"
        failure = status_error(status, {str(code), str(stated.get("type"))}, self._hide(message), response.headers)
        return failure, str(stated.get("param"))

    def _hide(self, message: str) -> str:
        return message.replace(self._key, "***") if len(self._key) > 4 else message  # not the "none" of local servers


def _json(text: str) -> Any:
    """What the text is as JSON, None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


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
