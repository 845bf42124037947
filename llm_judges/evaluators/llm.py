"""LLMEvaluator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from logging import getLogger
from math import fsum, isnan, nan
from os import fspath
from typing import TYPE_CHECKING, Any, Self, get_origin

from llm_judges import outputs as reading, prompt
from llm_judges.failures import InvalidOutputError, RowError, StoppedError
from llm_judges.generator import check_generator
from llm_judges.openai_chat import OpenAIChatGenerator
from llm_judges.runner import Batch, Run, RunOptions, run_batch, run_in_thread
from llm_judges.serialisation import generator_from_dict, type_from_text, type_to_text
from llm_judges.verdict import ScoreOf, Verdict, verdict
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
            `reply(request)`; several are a panel, all of whom judge each row. None: OpenAI's default model.
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
        self._reply = reading.outputs_of(outputs)
        keys, schema = self._reply.keys, self._reply.schema
        self.validate_init_parameters(inputs, keys, [] if schema and examples is None else examples)
        if score is not None and score not in keys:
            raise InputError(f"score must be one of the outputs {keys}, got {score!r}")
        self.instructions = instructions
        self.inputs = inputs
        self.outputs = outputs
        self.examples = examples
        self.progress_bar = progress_bar
        self.raise_on_failure = raise_on_failure
        self.score = score
        self.options = RunOptions(**options)
        self._chat_generator = (
            OpenAIChatGenerator(generation_kwargs=_JSON_MODE) if chat_generator is None else chat_generator
        )
        self._generators = chat_generator if isinstance(chat_generator, list) else [self._chat_generator]
        for generator in self._generators:
            check_generator(generator)
        if not self._generators:
            raise InputError("chat_generator is an empty list")
        self._preamble = prompt.preamble(instructions, keys, examples, schema)

    @staticmethod
    def validate_init_parameters(inputs: Any, outputs: Any, examples: Any) -> None:
        """Refuses arguments of the constructor that are not as described there.

        Raises:
            InputError: says what was expected and what came.
        """
        if not isinstance(inputs, list) or not all(
            isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and _is_list_type(pair[1])
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
                raise InputError(f"expected the input {name!r}, got only {list(received)}")
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
        try:
            reading.has_keys(expected)(reading.json_object(received))
        except InvalidOutputError as error:
            if self.raise_on_failure:
                raise InvalidOutputError(f"a reply cannot be read: {error}") from error
            _logger.warning("a reply cannot be read: %s", error)
            return False
        return True

    def prepare_template(self) -> str:
        """The prompt with a placeholder `{{ name }}` for each input."""
        return prompt.fill(self._preamble, {name: f"{{{{ {name} }}}}" for name, _ in self.inputs})

    def prompts(self, **inputs: Any) -> Iterator[str]:
        """The prompts of the rows as they are sent.

        Raises:
            InputError: as in `run`.
        """
        columns = self._columns(inputs)
        return (self._prompt(columns, row) for row in range(_length(columns)))

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
        """
        columns = self._columns(inputs)
        self.warm_up()
        return self._finished(columns, run_in_thread(lambda: self._run(columns, own_loop=True)))

    async def run_async(self, **inputs: Any) -> dict[str, Any]:
        """As `run`, in the running event loop."""
        columns = self._columns(inputs)
        await self.warm_up_async()
        return self._finished(columns, await self._run(columns, own_loop=False))

    def warm_up(self) -> None:
        """Resolves the generator's key, and whatever else it prepares.

        Raises:
            InputError: the key's environment variable is not set.
        """
        for generator in self._generators:
            if hasattr(generator, "warm_up"):
                generator.warm_up()

    async def warm_up_async(self) -> None:
        """As `warm_up`, in the running event loop."""
        for generator in self._generators:
            if hasattr(generator, "warm_up_async"):
                await generator.warm_up_async()
            elif hasattr(generator, "warm_up"):
                generator.warm_up()

    def close(self) -> None:
        """Releases what the generator holds, if it holds anything between runs."""
        for generator in self._generators:
            if hasattr(generator, "close"):
                generator.close()

    async def close_async(self) -> None:
        """As `close`, in the running event loop."""
        for generator in self._generators:
            if hasattr(generator, "close_async"):
                await generator.close_async()
            elif hasattr(generator, "close"):
                generator.close()

    def to_dict(self) -> dict[str, Any]:
        """{"type": "<module>.<class>", "init_parameters": {...}}, of plain values; no key is in it.

        Options of a run are in it where they differ from their defaults.

        Raises:
            InputError: a generator that has no `to_dict`.
        """
        return {"type": f"{type(self).__module__}.{type(self).__qualname__}", "init_parameters": self._parameters()}

    def _parameters(self) -> dict[str, Any]:
        own: dict[str, Any] = {} if self.score is None else {"score": self.score}
        return {
            "instructions": self.instructions,
            "inputs": [[name, type_to_text(kind)] for name, kind in self.inputs],
            "outputs": self.outputs if self._reply.schema is None else dict(self._reply.schema),
            **own,
            **self._shared_parameters(),
        }

    def _shared_parameters(self) -> dict[str, Any]:
        described = [_described(generator) for generator in self._generators]
        options = {
            option.name: getattr(self.options, option.name)
            for option in fields(RunOptions)
            if getattr(self.options, option.name) != option.default
        }
        if "store" in options:
            options["store"] = fspath(options["store"])
        return {
            "examples": self.examples,
            "chat_generator": described if isinstance(self._chat_generator, list) else described[0],
            "progress_bar": self.progress_bar,
            "raise_on_failure": self.raise_on_failure,
            **options,
        }

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

    # A kind of judge is made of these: how a reply is read, what score its outputs have, how a row is shown.

    def _read(self, value: dict[str, Any]) -> dict[str, Any]:
        result = self._reply.read(value)
        if self.score is not None:
            reading.number(result[self.score], self.score)
        return result

    @property
    def _score_of(self) -> ScoreOf | None:
        name = self.score
        return None if name is None else lambda result: float(result[name])

    @property
    def _binary(self) -> bool:
        if self.score is None or self._reply.schema is None:
            return False
        field = self._reply.schema["properties"][self.score]
        return field.get("type") == "boolean" or set(field.get("enum", [2])) <= {0, 1}

    def _shown(self, verdict: Verdict) -> dict[str, Any] | None:
        return verdict.outcome.result

    def _extra(self, columns: Mapping[str, list[Any]], verdicts: Sequence[Verdict]) -> dict[str, Any]:  # noqa: ARG002
        return {}

    def _columns(self, inputs: Mapping[str, Any]) -> dict[str, list[Any]]:
        self.validate_input_parameters(dict(self.inputs), inputs)
        columns = {name: inputs[name] for name, _ in self.inputs}
        for values in columns.values():
            for value in values:
                prompt.render(value)  # refused before anything is paid for
        return columns

    def _prompt(self, columns: Mapping[str, list[Any]], row: int) -> str:
        return prompt.fill(self._preamble, {name: prompt.render(values[row]) for name, values in columns.items()})

    async def _run(self, columns: Mapping[str, list[Any]], *, own_loop: bool) -> Run:
        batch = Batch(
            _length(columns),
            lambda row: self._prompt(columns, row),
            lambda text: self._read(reading.json_object(text)),
            self._generators,
            self._reply.schema,
        )
        stop = self.raise_on_failure
        bar = self.progress_bar
        return await run_batch(batch, self.options, own_loop=own_loop, stop_on_failure=stop, progress_bar=bar)

    def _finished(self, columns: Mapping[str, list[Any]], run: Run) -> dict[str, Any]:
        result = self._result(columns, run)
        stopped: StoppedError | None = run.fatal
        if stopped is None and self.raise_on_failure:
            stopped = next(
                (
                    RowError(row, str(outcome.reason), str(outcome.detail))
                    for row, outcomes in enumerate(run.outcomes)
                    for outcome in outcomes
                    if outcome.failed
                ),
                None,
            )
        if stopped is not None:
            stopped.result = result
            raise stopped
        unscored = Counter(reason for reason in result["reason"] if reason)
        if unscored:
            _logger.warning(
                "%s could not judge %d of %d rows (%s); they are left out of any score",
                type(self).__name__,
                unscored.total(),
                len(run.outcomes),
                ", ".join(f"{reason}: {count}" for reason, count in unscored.most_common()),
            )
        return result

    def _result(self, columns: Mapping[str, list[Any]], run: Run) -> dict[str, Any]:
        score_of, binary = self._score_of, self._binary
        verdicts = [verdict(outcomes, score_of, binary=binary) for outcomes in run.outcomes]
        meta = [None if one.outcome.meta is None else dict(one.outcome.meta) for one in verdicts]
        result: dict[str, Any] = {
            "results": [self._shown(one) for one in verdicts],
            "meta": meta if any(meta) else None,
            "status": ["error" if one.outcome.reason else "evaluated" for one in verdicts],
            "reason": [one.outcome.reason for one in verdicts],
            "detail": [one.outcome.detail for one in verdicts],
            "usage": run.usage.as_dict(),
        }
        n_scored = sum(one.outcome.reason is None for one in verdicts)
        if score_of is not None:
            scores = [one.score for one in verdicts]
            scored = [score for score in scores if score is not None and not isnan(score)]
            n_scored = len(scored)
            result |= {"score": fsum(scored) / n_scored if scored else nan, "individual_scores": scores}
        result["coverage"] = {"scored": n_scored, "total": len(verdicts)}
        if len(self._generators) * self.options.samples > 1:
            result["samples"] = [
                [
                    {"result": outcome.result, "score": score, "reason": outcome.reason}
                    for outcome, score in zip(outcomes, one.scores, strict=True)
                ]
                for outcomes, one in zip(run.outcomes, verdicts, strict=True)
            ]
            result["spread"] = [one.spread for one in verdicts]
        return result | self._extra(columns, verdicts)


def _is_list_type(kind: Any) -> bool:
    origin: Any = get_origin(kind)
    return origin is list


def _length(columns: Mapping[str, list[Any]]) -> int:
    return len(next(iter(columns.values()), ()))


def _described(generator: Any) -> dict[str, Any]:
    if not hasattr(generator, "to_dict"):
        raise InputError(f"chat_generator cannot be described: {type(generator).__name__} has no to_dict()")
    described: dict[str, Any] = generator.to_dict()
    return described
