"""Chat completions of OpenAI and of the many servers that speak its protocol."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial
from logging import getLogger
from typing import Any

from llm_judges.failures import CallError, require, status_error
from llm_judges.generator import REPLY_LIMITS, Call, ConnectedGenerator, Reply, Request, seed_of
from metrics_core.errors import InputError

_logger = getLogger(__name__)

_JSON_OBJECT = {"type": "json_object"}
# 400s in the servers' own words
_OF_THE_FORMAT = re.compile("response.format|json_schema|json_object|guided_json|structured.output", re.IGNORECASE)
_UNSUPPORTED = re.compile("unsupported|not support|unrecognized|unknown|not permitted|not allowed", re.IGNORECASE)
_SET_HERE = {"messages", "stream"}
_NEEDED = {"model", "messages", "response_format", *REPLY_LIMITS}  # a limit keeps the budget


@dataclass(frozen=True, slots=True)
class EnvVar:
    """A secret that is read from an environment variable when it is needed, and is never written."""

    name: str

    def resolve_value(self) -> str:
        """The variable's value; an InputError says if it is not set."""
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


class OpenAIChatGenerator(ConnectedGenerator):
    """Asks a server with OpenAI's chat completions: OpenAI itself, vLLM, Ollama, Azure, llama.cpp and others.

        OpenAIChatGenerator("gpt-5-mini")
        OpenAIChatGenerator("Qwen/Qwen3-8B", api_key="none", api_base_url="http://localhost:8000/v1")  # vLLM
        OpenAIChatGenerator("qwen3", api_key="none", api_base_url="http://localhost:11434/v1")  # Ollama
        OpenAIChatGenerator(
            "<deployment>", EnvVar("AZURE_OPENAI_API_KEY"), "https://<resource>.openai.azure.com/openai/v1/"
        )

    The reply's format is enforced by the server where it can be: a JSON schema if the request has one, else any JSON
    object, else nothing but the prompt. A parameter that the server does not support (`seed`, `temperature`, …) is left
    out. Both are remembered for the run.

    Args:
        model: its name.
        api_key: an EnvVar, a Secret of Haystack's, or the key itself, which `to_dict` leaves out.
        api_base_url: None is that of the environment variable OPENAI_BASE_URL, or OpenAI's own.
        generation_kwargs: parameters of the request, such as `{"temperature": 0, "max_completion_tokens": 500}`;
            `{"response_format": None}` asks for none.
        timeout: seconds a call may take.

    Raises:
        InputError: a key or parameters that are not as described.
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
        if not isinstance(api_key, str) and not hasattr(api_key, "resolve_value"):
            raise InputError(f"api_key must be an EnvVar, a Secret or the key itself, got {type(api_key).__name__}")
        parameters = dict(generation_kwargs or {})
        if taken := _SET_HERE & parameters.keys():
            raise InputError(
                f"generation_kwargs cannot have {min(taken)!r}: messages are the judge's, replies come whole"
            )
        response_format = parameters.get("response_format", _JSON_OBJECT)
        if response_format is not None and not (isinstance(response_format, Mapping) and "type" in response_format):
            raise InputError(f"response_format must be None or like {_JSON_OBJECT}, got {response_format!r:.80}")
        self.model = model
        self._api_key = api_key
        self.api_base_url = api_base_url or os.environ.get("OPENAI_BASE_URL")  # now, so that the dict form has it
        self.generation_kwargs = parameters
        self.timeout = timeout

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
        """Opens clients in the running event loop, and closes them."""
        async with AsyncExitStack() as clients:
            yield _Session(self, self._key(), clients)

    def _key(self) -> str:
        key = str(self._api_key if isinstance(self._api_key, str) else self._api_key.resolve_value()).strip()
        if not (key.isascii() and key.isprintable()):  # the client's own error would show it
            raise InputError("api_key has characters that no header can carry")
        return key

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


@cache
def _certificates() -> Any:
    return require("httpx2").create_ssl_context()  # 50 ms, which a run need not pay again


class _Session:
    """A run's calls: what the server rejects in one is left out of the next."""

    def __init__(self, chat: OpenAIChatGenerator, key: str, clients: AsyncExitStack) -> None:
        openai, httpx2 = require("openai"), require("httpx2")
        self._open = partial(openai.DefaultAsyncHttpx2Client, verify=_certificates(), timeout=chat.timeout)
        self._clients = clients
        self._idle: list[Any] = []
        sdk = openai.AsyncOpenAI(api_key=key, base_url=chat.api_base_url, http_client=self._open())  # never opened
        headers = {name: text for name, text in sdk.default_headers.items() if isinstance(text, str)}
        self._request = partial(
            httpx2.Request,
            "POST",
            httpx2.URL(f"{sdk.base_url}chat/completions"),
            headers=httpx2.Headers(headers | {"Authorization": f"Bearer {key}"}),
            extensions={"timeout": httpx2.Timeout(chat.timeout).as_dict()},
        )
        self._key = key
        self._parameters = {"response_format": _JSON_OBJECT, "model": chat.model, **chat.generation_kwargs}
        self._rejected: set[str] = set()  # names of parameters, types of formats

    async def __call__(self, request: Request) -> Reply:
        messages = [{"role": message.role, "content": message.text} for message in request.messages]
        while True:
            asked = {"messages": messages} | self._accepted(request)
            # ASCII: a reply that is sent back may have lone surrogates
            response = await self._post(json.dumps(asked).encode())
            data = _json(response.text)
            error = data.get("error") if isinstance(data, dict) else None
            if response.status_code < 400 and not error:
                return self._reply(data, response.text)
            stated = error if isinstance(error, dict) else {}
            failure = self._failure(response, stated)
            rejected = _rejected(failure, stated, asked) if response.status_code in {400, 422} else None
            if rejected is None:
                raise failure
            if rejected not in self._rejected:  # else by another of the calls that were under way together
                _logger.warning("the server rejects %s; going on without", rejected)
                self._rejected.add(rejected)

    async def _post(self, body: bytes) -> Any:
        # By the SDK's HTTP client, and not its chat.completions.create: to check what is sent and to type what comes
        # takes more CPU than the rest of a call, and what comes must survive whatever it is. By a client for each call
        # that is under way: one for all looks at all of its connections at each call.
        http = self._idle.pop() if self._idle else await self._clients.enter_async_context(self._open())
        try:
            return await http.send(self._request(content=body))
        finally:
            self._idle.append(http)

    def _accepted(self, request: Request) -> dict[str, Any]:
        """The parameters, with the strictest format, that have not been rejected so far."""
        formats = [one for one in [self._parameters["response_format"]] if one is not None]
        if request.schema is not None and formats == [_JSON_OBJECT]:
            strict = {"name": "reply", "schema": _strict(request.schema), "strict": True}
            formats.insert(0, {"type": "json_schema", "json_schema": strict})
        parameters = self._parameters | seed_of(request.sample, self._parameters)
        accepted = {name: value for name, value in parameters.items() if name not in self._rejected}
        accepted["response_format"] = next((one for one in formats if one["type"] not in self._rejected), None)
        return {name: value for name, value in accepted.items() if value is not None}

    def _reply(self, data: Any, body: str) -> Reply:
        try:
            choice = data["choices"][0]
            text, refusal = choice["message"].get("content"), choice["message"].get("refusal")
            meta = {"model": data.get("model"), "index": 0, "finish_reason": choice.get("finish_reason")}
            return Reply(text, refusal, meta | {"usage": data.get("usage")})
        except (KeyError, IndexError, TypeError, AttributeError, InputError):
            raise CallError(self._hide(f"the server sent no completion: {body[:200]!r}"), retry=True) from None

    def _failure(self, response: Any, stated: Mapping[str, Any]) -> CallError:
        status, code = response.status_code, stated.get("code")
        if status < 400:  # routers pass on an error with status 200 and the status as its code
            status = code if isinstance(code, int) else 500
        message = f"{status}: {stated.get('message') or response.text[:500]}"
        if isinstance(code, str):
            message += f" ({code})"
        return status_error(status, {str(code), str(stated.get("type"))}, self._hide(message), response.headers)

    def _hide(self, message: str) -> str:
        return message.replace(self._key, "***") if len(self._key) > 4 else message  # not the "none" of local servers


def _rejected(failure: CallError, stated: Mapping[str, Any], asked: Mapping[str, Any]) -> str | None:
    """What a 400 does not support of what was asked: a parameter's name, or the type of the format."""
    message, named = str(failure), str(stated.get("param"))
    if failure.reason != "transport":
        return None
    if "response_format" in asked and (named.startswith("response_format") or _OF_THE_FORMAT.search(message)):
        return str(asked["response_format"]["type"])
    if not _UNSUPPORTED.search(message):
        return None
    names = [name for name in asked if name not in _NEEDED]
    mentioned = (name for name in names if re.search(rf"\b{re.escape(name)}\b", message))
    return named if named in names else next(mentioned, None)


def _json(text: str) -> Any:
    """What the text is as JSON, None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


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
