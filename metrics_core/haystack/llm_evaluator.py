"""LLMEvaluator as a component, and what the components that ask a language model share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from haystack import component, default_from_dict
from haystack.components.generators.chat.openai import OpenAIChatGenerator
from haystack.core.serialization import component_to_dict
from haystack.utils import deserialize_chatgenerator_inplace, deserialize_type

import llm_judges

ANSWER_SOCKETS: dict[str, Any] = {
    "score": float,
    "individual_scores": list[float],
    "results": list[dict[str, Any]],
    "meta": list[dict[str, Any]] | None,
}
_DETAILS: dict[str, Any] = {
    "status": list[str],
    "reason": list[str | None],
    "detail": list[str | None],
    "usage": dict[str, int],
    "coverage": dict[str, int],
    "flags": list[list[str]],
    "samples": list[list[dict[str, Any]]],
    "spread": list[float],
}


def default_generator() -> OpenAIChatGenerator:
    """Haystack's generator for OpenAI's default model, in JSON mode."""
    return OpenAIChatGenerator(generation_kwargs={"response_format": {"type": "json_object"}, "seed": 42})


class JudgeComponent(llm_judges.LLMEvaluator):
    """A judge with sockets, and generators saved as Haystack does; comes before the judge among a component's bases."""

    details = False

    def _set_sockets(self, *, details: bool, **outputs: Any) -> None:
        self.details = details
        self._sockets = outputs | (_DETAILS if details else {})
        component.set_input_types(self, **dict(self.inputs))
        component.set_output_types(self, **self._sockets)

    def run(self, **inputs: Any) -> dict[str, Any]:
        """Judges each row, as the evaluator does; without `details` with no more than Haystack's outputs."""
        return self._put_out(super().run(**inputs))

    async def run_async(self, **inputs: Any) -> dict[str, Any]:
        """As `run`, in the running event loop."""
        return self._put_out(await super().run_async(**inputs))

    def _parse_reply(self, reply_text: str) -> dict[str, Any] | None:
        """The outputs in a reply's text; where it has none, None and a warning, or an error by `raise_on_failure`."""
        return self._parsed(reply_text, self._outputs.read)

    def _put_out(self, result: dict[str, Any]) -> dict[str, Any]:
        return {name: result[name] for name in self._sockets if name in result}

    def _shared_parameters(self) -> dict[str, Any]:
        return super()._shared_parameters() | ({"details": True} if self.details else {})

    def _described(self, generator: Any) -> dict[str, Any]:
        return component_to_dict(generator, "chat_generator")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The component that `to_dict` described; generators and types are loaded as Haystack allows.

        Raises:
            DeserializationError: another class, or one that may not be loaded.
        """
        parameters = dict(data.get("init_parameters", {}))
        if "inputs" in parameters:
            parameters["inputs"] = [(name, deserialize_type(kind)) for name, kind in parameters["inputs"]]
        generator = parameters.get("chat_generator")
        if isinstance(generator, list):
            panel = [{"chat_generator": one} for one in generator]
            for one in panel:
                deserialize_chatgenerator_inplace(one)
            parameters["chat_generator"] = [one["chat_generator"] for one in panel]
        elif generator is not None:
            deserialize_chatgenerator_inplace(parameters)
        return default_from_dict(cls, {**data, "init_parameters": parameters})


@component
class LLMEvaluator(JudgeComponent, llm_judges.LLMEvaluator):
    """llm_judges.LLMEvaluator as a component.

    Args:
        instructions, inputs, outputs, examples, progress_bar, raise_on_failure, options: as there.
        chat_generator: None: Haystack's OpenAIChatGenerator in JSON mode; else any of Haystack's or ours.
        details: whether `run` puts out all that the evaluator does ("status", "reason", "coverage", "usage", …), or
            Haystack's "results" and "meta" alone; with `score=`, also "score" and "individual_scores".
    """

    def __init__(
        self,
        instructions: str,
        inputs: list[tuple[str, Any]],
        outputs: Any,
        examples: list[dict[str, Any]] | None = None,
        progress_bar: bool = True,
        *,
        raise_on_failure: bool = True,
        chat_generator: Any = None,
        details: bool = False,
        **options: Any,
    ) -> None:
        llm_judges.LLMEvaluator.__init__(
            self,
            instructions,
            inputs,
            outputs,
            examples,
            progress_bar,
            raise_on_failure=raise_on_failure,
            chat_generator=default_generator() if chat_generator is None else chat_generator,
            **options,
        )
        scored = {} if self.score is None else {"score": float, "individual_scores": list[float]}
        self._set_sockets(details=details, results=list[dict[str, Any]], meta=list[dict[str, Any]] | None, **scored)
