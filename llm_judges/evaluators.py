"""LLMEvaluator under Haystack's name and contract: a judge by instructions, and what all judges share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from logging import getLogger
from math import fsum, isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_origin

from llm_judges import outputs as reading, prompt
from llm_judges.calls import check_generator
from llm_judges.failures import CallError, InterruptedRun, InvalidOutputError, RowError
from llm_judges.generator import Reply, Request
from llm_judges.openai_chat import OpenAIChatGenerator
from llm_judges.runner import Batch, Outcome, Run, RunOptions, run_in_thread
from llm_judges.serialisation import generator_from_dict, type_from_text, type_to_text
from llm_judges.verdicts import number, spread, verdict
from metrics_core.errors import InputError

if TYPE_CHECKING:
    from pydantic import BaseModel

_logger = getLogger(__name__)

_JSON_MODE = {"response_format": {"type": "json_object"}, "seed": 42}


class LLMEvaluator:
    """Asks a language model about each row, by instructions and examples of your own.

        LLMEvaluator(
            instructions="Is the answer polite?",
            inputs=[("answers", list[str])],
            outputs=["polite"],
            examples=[{"inputs": {"answers": "Certainly, here it is."}, "outputs": {"polite": 1}}],
        )

    A rubric with a reason, as a pydantic model; the server enforces it where it can, we check it always:

        class Rating(BaseModel):
            reason: str = Field(description="in a sentence, before the rating")
            rating: int = Field(ge=1, le=5, description="1: off the point; 3: in part; 5: complete and correct")

        LLMEvaluator("Rate the answer.", [("questions", list[str]), ("answers", list[str])], Rating, score="rating")

    Args:
        instructions: what is to be judged, and how.
        inputs: name and list type of each column of `run`, such as ("answers", list[str]).
        outputs: the keys of a reply; or a pydantic model, or the JSON schema of an object.
        examples: {"inputs": {...}, "outputs": {...}} each; may be left out where outputs is a model or a schema.
        progress_bar: shows rows, failures and tokens on standard error.
        raise_on_failure: raises a RowError for the first row that cannot be judged; else such rows are None.
        chat_generator: OpenAIChatGenerator, a chat generator of Haystack's, or any other with `run(messages)` or
            `async def reply(request)`; several are a panel, all of whom judge each row. None: OpenAI's default model.
        score: the output that becomes the row's score.
        **options: how the rows are run: see RunOptions.

    Raises:
        InputError: arguments that are not as described.
    """

    def __init__(
        self,
        instructions: str,
        inputs: list[tuple[str, Any]],
        outputs: list[str] | type[BaseModel] | Mapping[str, Any],
        examples: list[dict[str, Any]] | None = None,
        progress_bar: bool = True,
        *,
        raise_on_failure: bool = True,
        chat_generator: Any = None,
        score: str | None = None,
        **options: Any,
    ) -> None:
        self._outputs = reading.outputs_of(outputs)
        self.output_keys, schema = self._outputs.keys, self._outputs.schema
        self.validate_init_parameters(inputs, self.output_keys, [] if schema and examples is None else examples)
        if score is not None and score not in self.output_keys:
            raise InputError(f"score must be one of the outputs {self.output_keys}, got {score!r}")
        if chat_generator is None:
            chat_generator = OpenAIChatGenerator(generation_kwargs=_JSON_MODE)
        self.instructions = instructions
        self.inputs = inputs
        self.outputs = outputs
        self.examples = examples
        self.progress_bar = progress_bar
        self.raise_on_failure = raise_on_failure
        self.score = score
        self.options = RunOptions(**options)
        self._chat_generator = chat_generator
        for generator in self._generators:
            check_generator(generator)
        if not self._generators:
            raise InputError("chat_generator is an empty list")
        self._preamble = prompt.preamble(instructions, self.output_keys, examples, schema)

    @property
    def _generators(self) -> list[Any]:
        return self._chat_generator if isinstance(self._chat_generator, list) else [self._chat_generator]

    @staticmethod
    def validate_init_parameters(inputs: Any, outputs: Any, examples: Any) -> None:
        """Refuses arguments of the constructor that are not as described there.

        Raises:
            InputError: says what was expected and what came.
        """
        if not isinstance(inputs, list) or not all(
            isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and _is_list(pair[1])
            for pair in inputs
        ):
            raise InputError(f"inputs must be a list of tuples of a name and a type of list, got {inputs!r}")
        if not isinstance(outputs, list) or not all(isinstance(name, str) for name in outputs):
            raise InputError(f"outputs must be a list of str, a pydantic model or a JSON schema, got {outputs!r}")
        if not isinstance(examples, list) or not all(isinstance(example, dict) for example in examples):
            raise InputError(f"examples must be a list of dictionaries, got {examples!r}")
        for example in examples:
            if set(example) != {"inputs", "outputs"} or not all(
                isinstance(side, dict) and all(isinstance(name, str) for name in side) for side in example.values()
            ):
                raise InputError(
                    f"each example must have the keys 'inputs' and 'outputs', both dictionaries with str keys, "
                    f"got {example!r}"
                )

    @staticmethod
    def validate_input_parameters(expected: Mapping[str, Any], received: Mapping[str, Any]) -> None:
        """Refuses columns that are missing, are no lists, or differ in length; others than `expected` are ignored.

        Raises:
            InputError: says what was expected and what came.
        """
        for name in expected:
            if name not in received:
                raise InputError(f"LLM evaluator expected input parameter {name!r}, got only {list(received)}")
            if not isinstance(received[name], list):
                raise InputError(f"the input {name!r} must be a list, got {type(received[name]).__name__}")
        lengths = {name: len(received[name]) for name in expected}
        if len(set(lengths.values())) > 1:
            raise InputError(f"inputs must be of one length, got {lengths}")

    def is_valid_json_and_has_expected_keys(self, expected: list[str], received: str) -> bool:
        """Whether a reply's text is a JSON object with these keys.

        Raises:
            InvalidOutputError: it is not, and `raise_on_failure` is set; else a warning says so.
        """
        return self._parsed(received, reading.having(expected)) is not None

    def _parsed(self, text: str, read: reading.Read) -> dict[str, Any] | None:
        """The object of a reply's text; where it cannot be read, an error, or a warning and None."""
        try:
            return read(reading.json_object(text))
        except InvalidOutputError as error:
            if self.raise_on_failure:
                raise InvalidOutputError(f"a reply cannot be read: {error}") from error
            _logger.warning("a reply cannot be read: %s", error)
            return None

    def prepare_template(self) -> str:
        """The prompt with a placeholder `{{ name }}` for each input."""
        return prompt.fill(self._preamble, {name: f"{{{{ {name} }}}}" for name, _ in self.inputs})

    def requests(self, **inputs: Any) -> list[Request]:
        """What a run would ask of its generators, without what the store has of it; asks nothing and needs no key.

        Raises:
            InputError: as in `run`.
        """
        noting = [_Noting(generator) for generator in self._generators]
        store = self.options.store if self.options.store and Path(self.options.store).exists() else None
        options = replace(self.options, store=store, budget_tokens=None, budget_requests=None)
        run = Run(replace(self._batch(inputs), generators=noting), options, stop_on_failure=False)
        run_in_thread(partial(run.finish, own_loop=True, progress_bar=False))
        if run.fatal:
            raise run.fatal
        return [request for generator in noting for request in generator.requests]

    def run(self, **inputs: Any) -> dict[str, Any]:
        """Judges each row.

        Args:
            **inputs: a list for each of the declared inputs, all of one length.

        Returns:
            Aligned by row: "results" (the outputs, None where there are none), "meta" (what came with the reply: model,
            finish_reason, usage; None if no row has any), "status" ("evaluated" or "error"), "reason" (None, or why
            the row is unscored: refused, truncated, content_filter, invalid_output, context_length, timeout,
            rate_limited, transport, skipped, no_majority) and "detail" (the same in words).

            Of the run: "usage" (tokens and requests that it cost) and "coverage" ({"scored", "total"} rows).

            With `score`: "individual_scores" (NaN where unscored) and "score", the mean of the scored rows.

            With several samples or generators: "samples", of each row a list of {"result", "score", "reason"}, and
            "spread", of each row the difference of its highest and lowest score. The row's score is their mean; of
            yes-or-no scores the majority, and where there is none NaN, with the reason no_majority. Samples that were
            not scored have no part in either; with none scored the row has the first one's reason. The row's result
            and meta are those of its first sample that was scored, or that voted with the majority.

        Raises:
            InputError: columns that are missing, are no lists, differ in length, or hold what JSON does not have.
            FatalError: the endpoint will answer nothing in this run: key, quota, model. Its `result` has what was
                finished.
            RowError: a row cannot be judged, and `raise_on_failure` is set. Its `result` has what was finished.
            InterruptedRun: a KeyboardInterrupt. Its `result` has what was finished.
        """
        run = Run(self._batch(inputs), self.options, stop_on_failure=self.raise_on_failure)
        self.warm_up()
        try:
            run_in_thread(partial(run.finish, own_loop=True, progress_bar=self.progress_bar))
        except KeyboardInterrupt:
            raise InterruptedRun(self._result(inputs, run)) from None
        return self._finished(inputs, run)

    async def run_async(self, **inputs: Any) -> dict[str, Any]:
        """As `run`, in the running event loop."""
        run = Run(self._batch(inputs), self.options, stop_on_failure=self.raise_on_failure)
        await self.warm_up_async()
        await run.finish(own_loop=False, progress_bar=self.progress_bar)
        return self._finished(inputs, run)

    def warm_up(self) -> None:
        """Has the generators prepare; an InputError says if the key's environment variable is not set."""
        self._each("warm_up")

    async def warm_up_async(self) -> None:
        """As `warm_up`, in the running event loop."""
        await self._each_async("warm_up")

    def close(self) -> None:
        """Has the generators release what they hold between runs, if they hold anything."""
        self._each("close")

    async def close_async(self) -> None:
        """As `close`, in the running event loop."""
        await self._each_async("close")

    def _each(self, method: str) -> None:
        for generator in self._generators:
            getattr(generator, method, lambda: None)()

    async def _each_async(self, method: str) -> None:
        for generator in self._generators:
            if hasattr(generator, f"{method}_async"):
                await getattr(generator, f"{method}_async")()
            else:
                getattr(generator, method, lambda: None)()

    def to_dict(self) -> dict[str, Any]:
        """{"type": "<module>.<class>", "init_parameters": {...}}, of plain values; no key is in it.

        Options of a run are in it where they differ from their defaults.

        Raises:
            InputError: a generator that has no `to_dict`.
        """
        return {"type": f"{type(self).__module__}.{type(self).__qualname__}", "init_parameters": self._parameters()}

    def _parameters(self) -> dict[str, Any]:
        return self._shared_parameters() | {
            "instructions": self.instructions,
            "inputs": [[name, type_to_text(kind)] for name, kind in self.inputs],
            "outputs": self.outputs if self._outputs.schema is None else dict(self._outputs.schema),
            **({} if self.score is None else {"score": self.score}),
        }

    def _shared_parameters(self) -> dict[str, Any]:
        described = [self._described(generator) for generator in self._generators]
        return {
            "examples": self.examples,
            "chat_generator": described if isinstance(self._chat_generator, list) else described[0],
            "progress_bar": self.progress_bar,
            "raise_on_failure": self.raise_on_failure,
            **self.options.to_dict(),
        }

    def _described(self, generator: Any) -> dict[str, Any]:
        if not hasattr(generator, "to_dict"):
            raise InputError(f"chat_generator cannot be described: {type(generator).__name__} has no to_dict()")
        described: dict[str, Any] = generator.to_dict()
        return described

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The evaluator that `to_dict` described.

        Raises:
            InputError: a generator or a type that is not there.
        """
        parameters = dict(data.get("init_parameters", {}))
        if "inputs" in parameters:
            parameters["inputs"] = [(name, type_from_text(kind)) for name, kind in parameters["inputs"]]
        generator = parameters.get("chat_generator")
        if isinstance(generator, list):
            parameters["chat_generator"] = [generator_from_dict(one) for one in generator]
        elif generator is not None:
            parameters["chat_generator"] = generator_from_dict(generator)
        return cls(**parameters)

    def __eq__(self, other: object) -> bool:
        if self is other or type(self) is not type(other):
            return self is other
        try:
            return self.to_dict() == other.to_dict()
        except ValueError:  # a generator that has no dict form equals itself alone
            return False

    def __hash__(self) -> int:
        return hash((type(self), self.instructions))

    # A kind of judge is made of these: how outputs are checked and scored, and how a row is shown.

    def _read(self, result: dict[str, Any]) -> tuple[dict[str, Any], float | None]:
        return result, None if self.score is None else reading.number(result[self.score], self.score)

    @property
    def _is_scored(self) -> bool:
        return self.score is not None

    @property
    def _is_binary(self) -> bool:
        field = (self._outputs.schema or {"properties": {}})["properties"].get(self.score)
        if not isinstance(field, Mapping):
            return False
        return field.get("type") == "boolean" or all(value in (0, 1) for value in field.get("enum", [2]))

    def _shown(self, outcome: Outcome) -> dict[str, Any] | None:
        return outcome.result

    def _batch(self, inputs: Mapping[str, Any]) -> Batch:
        self.validate_input_parameters(dict(self.inputs), inputs)
        names = [name for name, _ in self.inputs]
        for name in names:
            for value in inputs[name]:
                prompt.render(value)  # refused before anything is paid for

        def prompt_of(row: int) -> str:
            return prompt.fill(self._preamble, {name: prompt.render(inputs[name][row]) for name in names})

        def read(text: str) -> tuple[dict[str, Any], float | None]:
            return self._read(self._outputs.read(reading.json_object(text)))

        n_rows = len(inputs[names[0]]) if names else 0
        return Batch(n_rows, prompt_of, read, self._generators, self._outputs.schema)

    def _finished(self, inputs: Mapping[str, Any], run: Run) -> dict[str, Any]:
        result = self._result(inputs, run)
        failures = (
            RowError(row, str(outcome.reason), str(outcome.detail))
            for row, outcomes in enumerate(run.outcomes)
            for outcome in outcomes
            if outcome.failed
        )
        stopped = run.fatal or (next(failures, None) if self.raise_on_failure else None)
        if stopped is not None:
            stopped.result = result
            raise stopped
        unscored = Counter(reason for reason in result["reason"] if reason)
        if unscored:
            counts = ", ".join(f"{reason}: {count}" for reason, count in unscored.most_common())
            said = "%d query(s) failed and were excluded from the score. %s could not judge %d of %d rows (%s)"
            n_unscored = unscored.total()
            _logger.warning(said, n_unscored, type(self).__name__, n_unscored, len(run.outcomes), counts)
        return result

    def _result(self, inputs: Mapping[str, Any], run: Run) -> dict[str, Any]:  # noqa: ARG002  # some kinds look at them
        verdicts = [verdict(outcomes, binary=self._is_binary) for outcomes in run.outcomes]
        meta = [None if one.meta is None else dict(one.meta) for one in verdicts]
        result: dict[str, Any] = {
            "results": [self._shown(one) for one in verdicts],
            "meta": meta if any(meta) else None,
            "status": ["error" if one.reason else "evaluated" for one in verdicts],
            "reason": [one.reason for one in verdicts],
            "detail": [one.detail for one in verdicts],
            "usage": dict(run.usage),
        }
        n_scored = sum(one.reason is None for one in verdicts)
        if self._is_scored:
            scores = [number(one) for one in verdicts]
            scored = [score for score in scores if not isnan(score)]
            n_scored = len(scored)
            result |= {"score": fsum(scored) / n_scored if scored else nan, "individual_scores": scores}
        result["coverage"] = {"scored": n_scored, "total": len(verdicts)}
        if len(self._generators) * self.options.samples > 1:
            result["samples"] = [
                [{"result": one.result, "score": number(one), "reason": one.reason} for one in outcomes]
                for outcomes in run.outcomes
            ]
            result["spread"] = [spread(outcomes) for outcomes in run.outcomes]
        return result


def _is_list(kind: Any) -> bool:
    origin: Any = get_origin(kind)
    return origin is list


class _Noting:
    """Takes down what its generator would be asked; to the store they are the same."""

    def __init__(self, generator: Any) -> None:
        self.requests: list[Request] = []
        if hasattr(generator, "to_dict"):
            self.to_dict = generator.to_dict

    async def reply(self, request: Request) -> Reply:
        self.requests.append(request)
        raise CallError("it is not to be asked", "skipped")
