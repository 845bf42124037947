"""What is chosen about a comparison of answers: checked at once, without loading anything."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from metrics_core.errors import InputError
from metrics_core.lists import is_list
from metrics_core.similarity.texts import Empty, half_surrogate

DEFAULT_MODEL = "sentence-transformers/paraphrase-multilingual-mpnet-base-v2"

Kind: TypeAlias = Literal["auto", "bi", "cross"]
Dtype: TypeAlias = Literal["float32", "bfloat16", "float16"]
OnTruncation: TypeAlias = Literal["warn", "raise", "ignore"]

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "kind": get_args(Kind),
    "dtype": get_args(Dtype),
    "on_truncation": get_args(OnTruncation),
    "empty": get_args(Empty),
}


@dataclass(frozen=True, slots=True)
class EnvVars:
    """A secret that is read when it is needed, from the first of some environment variables that is set."""

    names: tuple[str, ...]
    strict: bool = False  # whether one has to be set

    def resolve_value(self) -> str | None:
        """The secret; None where no variable is set.

        Raises:
            InputError: none is set, and one has to be.
        """
        found = next(filter(None, map(os.environ.get, self.names)), None)
        if found is None and self.strict:
            raise InputError(f"token is to be read from the environment, but {' and '.join(self.names)} is not set")
        return found

    def to_dict(self) -> dict[str, Any]:
        """In the form of Haystack's Secret."""
        return {"type": "env_var", "env_vars": list(self.names), "strict": self.strict}


HUB_TOKEN = EnvVars(("HF_API_TOKEN", "HF_TOKEN"))


@dataclass(frozen=True, slots=True)
class Settings:
    """A model, and how it compares answers.

    Args:
        model: a folder, a name on the Hugging Face hub, or a loaded SentenceTransformer or CrossEncoder.
        batch_size: scales the default of `token_budget`.
        device: a torch device such as "cpu" or "cuda:1"; None or "auto": what torch finds; a list of them: one process
            of sentence-transformers' on each.
        token: for models on the hub that need one: the token, or where it is found.
        kind: "bi" encodes both answers and takes the cosine; "cross" reads a pair at once; "auto" reads the model's
            configuration.
        dtype: of the weights. Scores are computed in float32 from what the model gives.
        token_budget: tokens of a batch, padding included. None: 32 x batch_size on a CPU, 1,024 x batch_size elsewhere.
        label: of a cross-encoder with several labels, the one whose probability is the score.
        prompt: put before every text instead of the model's own; or two, for the ground truth and the predictions.
        truncate_dim: how many leading dimensions of a bi-encoder's embeddings count.
        on_truncation: what to do about texts that are longer than the model reads.
        empty: how pairs are scored of which a text has no characters but white space and NUL: as the model does
            ("encode"), 0 ("zero"), or not at all ("raise").
        fast_fp32: whether float32 products of matrices on a CPU may be oneDNN's fast ones, which are rounded to
            bfloat16 on CPUs that multiply those; Similarity.dtype says so where they are. Measure first: they are for
            CPUs with AMX, and took 1.25 times as long on one with avx512_bf16.
        revision: branch, tag or commit of a model on the hub.
        trust_remote_code: whether code that comes with the model may run.
        local_files_only: whether the hub is not asked.
        progress_bar: whether progress is shown on standard error.

    Raises:
        InputError: a value that is none of these, or two that exclude each other.
    """

    model: Any = DEFAULT_MODEL
    batch_size: int = 32
    device: Any = None
    token: Any = field(default=HUB_TOKEN, repr=False)
    kind: Kind = "auto"
    dtype: Dtype = "float32"
    token_budget: int | None = None
    label: str | int | None = None
    prompt: str | tuple[str, str] | None = None
    truncate_dim: int | None = None
    on_truncation: OnTruncation = "warn"
    empty: Empty = "encode"
    fast_fp32: bool = False
    revision: str | None = None
    trust_remote_code: bool = False
    local_files_only: bool = False
    progress_bar: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.model, os.PathLike):
            object.__setattr__(self, "model", os.fspath(self.model))
        if self.model is None or self.model == "":
            raise InputError("model must be a folder, a name or a loaded model, got nothing")
        object.__setattr__(self, "device", _device(self.device))
        if isinstance(self.token, Mapping):
            object.__setattr__(self, "token", _secret(self.token))
        for name, choices in _CHOICES.items():
            if (value := getattr(self, name)) not in choices:
                raise InputError(
                    f"{name} must be {', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}, got {value!r}"
                )
        for name in ("batch_size", "token_budget", "truncate_dim"):
            value = getattr(self, name)
            if value is None and name != "batch_size":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{name} must be a positive integer, got {value!r}")
        if isinstance(self.prompt, list):
            object.__setattr__(self, "prompt", tuple(self.prompt))
        if not (self.prompt is None or isinstance(self.prompt, str) or _is_pair_of_texts(self.prompt)):
            raise InputError(f"prompt must be a string, or two for the two sides, got {self.prompt!r}")
        for prompt in filter(None, self.prompts):
            if half_surrogate(prompt):
                raise InputError(f"prompt has half a surrogate pair, which no tokenizer takes: {prompt!a}")
        if isinstance(self.label, bool) or not isinstance(self.label, str | int | None):
            raise InputError(f"label must be a name or a position, got {self.label!r}")
        if self.fast_fp32 and self.dtype != "float32":
            raise InputError(f"fast_fp32 is for dtype='float32', got dtype={self.dtype!r}")
        if self.fast_fp32 and isinstance(self.device, list):
            raise InputError("fast_fp32 works in this process; give one device, not a list")

    @property
    def prompts(self) -> tuple[str | None, str | None]:
        """The prompts of the ground truth and of the predictions; None: the model's own."""
        return self.prompt if isinstance(self.prompt, tuple) else (self.prompt, self.prompt)

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that were named, one or several; empty: what torch finds."""
        if self.device is None:
            return ()
        return (self.device,) if isinstance(self.device, str) else tuple(self.device)

    def to_dict(self) -> dict[str, Any]:
        """Plain values by argument; a token that was given as text is left out."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        token = self.token
        values["token"] = token.to_dict() if hasattr(token, "to_dict") else None
        values["prompt"] = list(self.prompt) if isinstance(self.prompt, tuple) else self.prompt
        return values

    def require_named_model(self) -> None:
        """Refuses a loaded model, where a plain value has to stand for it.

        Raises:
            InputError: the model is neither a folder nor a name.
        """
        if not isinstance(self.model, str):
            raise InputError(f"model must be a folder or a name here, got a loaded {type(self.model).__name__}")

    def what_counts(self) -> dict[str, Any]:
        """The settings on which scores depend, as plain values.

        Raises:
            InputError: a loaded model, of which a later run cannot know whether it is the same.
        """
        self.require_named_model()
        names = ("model", "revision", "kind", "dtype", "label", "prompt", "truncate_dim", "empty", "fast_fp32")
        values = self.to_dict()
        return {name: values[name] for name in names} | {"model_files": _files_in(Path(self.model))}


def _device(device: Any) -> Any:
    """A device as text, several as a list of texts; Haystack's ComponentDevice knows its name for torch."""
    if device is None:
        return None
    if is_list(device):
        if not len(device):
            raise InputError("device must name a device, or several, got an empty list")
        names = list(map(_device, device))
        if not all(isinstance(name, str) for name in names):
            raise InputError(f"device must name each of several devices, got {device!r}")
        return names
    name = str(device.to_torch_str() if hasattr(device, "to_torch_str") else device)
    return None if name == "auto" else name


def _files_in(folder: Path) -> str | None:
    """What tells the files of a folder from others under the same names; None: there is no such folder."""
    if not folder.is_dir():
        return None
    files = sorted(each for each in folder.rglob("*") if each.is_file())
    seen = [(str(each.relative_to(folder)), each.stat().st_size, each.stat().st_mtime_ns) for each in files]
    return sha256(repr(seen).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _secret(saved: Mapping[str, Any]) -> EnvVars:
    if saved.get("type") != "env_var":
        raise InputError(
            f"token must be a token or {{'type': 'env_var', 'env_vars': [...]}}, got type {saved.get('type')!r}"
        )
    names: Any = saved.get("env_vars")
    if not is_list(names) or not len(names) or not all(isinstance(name, str) for name in names):
        raise InputError(f"token needs the names of variables in a list, 'env_vars', got {names!r}")
    return EnvVars(tuple(names), saved.get("strict", True))


def _is_pair_of_texts(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(isinstance(each, str) for each in value)
