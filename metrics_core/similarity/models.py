"""Models of sentence-transformers: which kind a model is, loading it, and what its batches of texts give."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from threading import RLock
from typing import Any, Literal, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from metrics_core.errors import InputError, ModelError
from metrics_core.similarity.settings import HUB_TOKEN, Settings

Item: TypeAlias = str | tuple[str, str]
"""What a model reads at once: a text, or a (prediction, ground truth) pair."""

_CLASS_OF_KIND = {"bi": "SentenceTransformer", "cross": "CrossEncoder"}
_COUNTED_AT_ONCE = 1024  # items
_HEADS = ("ForSequenceClassification", "ForCausalLM")  # architectures that a CrossEncoder takes scores from
_in_use: WeakKeyDictionary[Any, RLock] = WeakKeyDictionary()  # of each loaded model
_CHARACTERS_A_TOKEN = 3  # of models whose tokenizer cannot be asked; only the cutting of batches depends on it


@dataclass(frozen=True, slots=True)
class Model:
    """A loaded model.

    `read` gives a row an item: of a bi-encoder the embedding, of length 1; of a cross-encoder the score alone.
    """

    loaded: Any  # SentenceTransformer | CrossEncoder
    kind: Literal["bi", "cross"]
    devices: tuple[str, ...]  # where it computes; of several, each in a process of its own
    truncate_dim: int | None
    label: int | None  # of a cross-encoder with several labels

    @property
    def dtype(self) -> str:
        """Of the weights, such as "float32"; or the backend, where that is not torch and keeps them to itself."""
        return str(self.loaded.dtype or self.loaded.get_backend()).removeprefix("torch.")

    @property
    def max_tokens(self) -> int | None:
        """How many tokens it reads of an item; None: all."""
        limit = self.loaded.max_seq_length
        return int(limit) if limit is not None and isfinite(limit) and limit < 10**9 else None

    def n_tokens(self, items: Sequence[Item], prompt: str | None) -> tuple[NDArray[np.int64], bool]:
        """(n_items,) how many tokens the items have, uncut; and whether they were counted rather than guessed."""
        if prompt is None:
            prompt = self.loaded.prompts.get(self.loaded.default_prompt_name)
        if prompt:
            items = [prompt + item if isinstance(item, str) else (prompt + item[0], item[1]) for item in items]
        tokenizer: Any = getattr(self.loaded[0], "tokenizer", None)
        count: Callable[[Any, Sequence[Item]], Iterable[int]] = _guessed
        if hasattr(tokenizer, "encode_batch"):  # of the tokenizers package, as static embeddings have it
            count = _counted_by_tokenizers
        elif hasattr(tokenizer, "model_max_length"):
            count = _counted_by_transformers
        # What tokenizers give takes a hundred times the memory of the text.
        parts = (items[start : start + _COUNTED_AT_ONCE] for start in range(0, len(items), _COUNTED_AT_ONCE))
        counts = np.fromiter((n for part in parts for n in count(tokenizer, part)), np.int64, len(items))
        return counts, count is not _guessed

    def read(self, items: list[Item], prompt: str | None, pool: Any = None) -> Any:
        """A tensor (n_items, width), float32, on the device of the model; on the CPU if it comes from a pool.

        Args:
            items: texts of a bi-encoder, pairs of a cross-encoder; computed at once, or in chunks by the pool.
            prompt: put before each; None: the model's own.
            pool: of sentence-transformers' worker processes.

        Raises:
            ModelError: the model gives something else.
        """
        found = self._read(items, prompt, pool)
        width = found.shape[1] if self.kind == "bi" and found.ndim == 2 else 1
        if tuple(found.shape) != (len(items), width):
            raise ModelError(
                f"the model gives an array of shape {tuple(found.shape)} for {len(items)} "
                f"{'texts' if self.kind == 'bi' else 'pairs of texts'}; a row for each is needed"
            )
        return found

    def _read(self, items: list[Item], prompt: str | None, pool: Any) -> Any:
        import torch

        common = {"prompt": prompt, "batch_size": len(items), "show_progress_bar": False, "pool": pool}
        with torch.inference_mode():
            if self.kind == "bi":
                embeddings = self.loaded.encode(items, convert_to_tensor=True, truncate_dim=self.truncate_dim, **common)
                return torch.nn.functional.normalize(embeddings.float(), dim=-1)
            if self.label is not None:
                scores = self.loaded.predict(
                    items, convert_to_tensor=True, activation_fn=torch.nn.Identity(), apply_softmax=True, **common
                )[:, self.label]
            else:
                # Once a model, and whatever its other scores are: a logit becomes a sigmoid, a sigmoid stays one.
                own = self.loaded.activation_fn
                activation = torch.nn.Sigmoid() if own is None or isinstance(own, torch.nn.Identity) else own
                scores = self.loaded.predict(items, convert_to_tensor=True, activation_fn=activation, **common)
            return scores.float().reshape(len(scores), -1)

    def alone(self) -> RLock:
        """Held while the model is used: its tokenizer cuts texts or does not, whichever thread said so last."""
        return _in_use.setdefault(self.loaded, RLock())

    @contextmanager
    def workers(self) -> Iterator[Any]:
        """A pool for `read` while the context lasts; None where one device computes in this process."""
        if len(self.devices) == 1:
            yield None
            return
        before = self.loaded.device
        pool = self.loaded.start_multi_process_pool(list(self.devices))
        try:
            yield pool
        finally:
            self.loaded.stop_multi_process_pool(pool)
            self.loaded.to(before)  # starting the pool moves the model to the CPU


def _counted_by_tokenizers(tokenizer: Any, items: Sequence[Item]) -> Iterable[int]:
    encoded = tokenizer.encode_batch(items, add_special_tokens=False)
    return (len(each.ids) + sum(len(cut.ids) for cut in each.overflowing) for each in encoded)


def _counted_by_transformers(tokenizer: Any, items: Sequence[Item]) -> Iterable[int]:
    sides = [items] if isinstance(items[0], str) else map(list, zip(*items, strict=True))
    encoded = tokenizer(
        *sides,
        truncation=False,
        padding=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )
    return map(len, encoded["input_ids"])


def _guessed(_tokenizer: Any, items: Sequence[Item]) -> Iterable[int]:
    return (2 + len(item if isinstance(item, str) else "".join(item)) // _CHARACTERS_A_TOKEN for item in items)


def load(settings: Settings) -> Model:
    """Loads the model, or takes the one that is loaded.

    Raises:
        ImportError: sentence-transformers is not installed.
        ModelError: there is no such model, it cannot be had, or its kind is not told.
        InputError: settings that do not fit the model.
    """
    try:
        import sentence_transformers
    except ImportError as error:
        raise ImportError(
            "semantic answer similarity needs sentence-transformers: pip install 'metrics-core[sas]'"
        ) from error
    classes = {kind: getattr(sentence_transformers, name) for kind, name in _CLASS_OF_KIND.items()}
    for device in settings.devices:
        _check_device(device)
    if isinstance(settings.model, str):
        loaded = _load_by_name(settings.model, settings, classes)
    elif isinstance(settings.model, tuple(classes.values())):
        loaded = settings.model
    else:
        raise InputError(
            "model must be a folder, a name, a SentenceTransformer or a CrossEncoder, "
            f"got a {type(settings.model).__name__}"
        )
    kind: Literal["bi", "cross"] = "cross" if isinstance(loaded, classes["cross"]) else "bi"
    model = Model(
        loaded=loaded,
        kind=kind,
        devices=settings.devices if len(settings.devices) > 1 else (str(loaded.device),),
        truncate_dim=settings.truncate_dim,
        label=_label(loaded, settings) if kind == "cross" else None,
    )
    _check(model, settings)
    return model


def _load_by_name(name: str, settings: Settings, classes: Mapping[str, Any]) -> Any:
    import torch

    _check_path(name)
    token = settings.token.resolve_value() if hasattr(settings.token, "resolve_value") else settings.token
    hub = {"token": token, "revision": settings.revision, "local_files_only": settings.local_files_only}
    dtype = getattr(torch, settings.dtype)
    # Of several, each worker takes the model to its own.
    device = "cpu" if len(settings.devices) > 1 else next(iter(settings.devices), None)
    with _clear_errors(name, settings, token):
        kind = settings.kind
        if kind == "auto":
            kind = _kind_of(name, hub)
        elif kind == "cross":
            _check_head(name, hub)
        loaded = classes[kind](
            name,
            device=device,
            trust_remote_code=settings.trust_remote_code,
            model_kwargs={"dtype": dtype},
            **hub,
        )
    return loaded.to(dtype)  # static embeddings take no dtype when they are loaded


def _check_path(name: str) -> None:
    """Refuses what looks like a path and is no folder: the hub would be asked for it."""
    path = Path(name)
    if path.is_file():
        raise ModelError(f"model {name!r} is a file; name the folder that holds the model")
    looks_like_a_path = name.startswith((".", "~", "/")) or name.count("/") > 1 or "\\" in name
    if looks_like_a_path and not path.is_dir():
        raise ModelError(f"model {name!r}: there is no such folder")


def _check_device(name: str) -> None:
    import torch

    try:
        device = torch.device(name)
        found = torch.get_device_module(device).device_count()
    except RuntimeError as error:
        raise InputError(f"device={name!r} is none of torch's: {str(error).splitlines()[0]}") from error
    if device.type != "cpu" and (device.index or 0) >= found:
        raise InputError(
            f"device={name!r}, but torch finds {found or 'no'} device{'s' * (found != 1)} of this type here"
        )


def _kind_of(name: str, hub: dict[str, Any]) -> Literal["bi", "cross"]:
    """What a model is, by what its files say; `modules.json` first, since static embeddings have no other file."""
    modules = _json_of(name, "modules.json", hub)
    model_type = (_json_of(name, "config_sentence_transformers.json", hub) or {}).get("model_type")
    if modules is not None and model_type is not None:
        for kind, class_name in _CLASS_OF_KIND.items():
            if model_type == class_name:
                return "cross" if kind == "cross" else "bi"
        raise ModelError(f"model {name!r} is a {model_type}; a SentenceTransformer or a CrossEncoder is needed")
    config = _json_of(name, "config.json", hub)
    architectures = (config or {}).get("architectures") or ()
    if any(each.endswith("ForSequenceClassification") for each in architectures):
        return "cross"
    if modules is not None or architectures:
        return "bi"
    if config is not None:
        raise ModelError(
            f"model {name!r} does not say what it is: its config.json names no architectures; give kind='bi' or "
            "kind='cross'"
        )
    if Path(name).is_dir():
        raise ModelError(f"model {name!r}: the folder has neither modules.json nor config.json, so it holds no model")
    raise ModelError(
        f"model {name!r} is neither a folder here nor to be had from the Hugging Face hub (is the name right? offline, "
        "only models that were downloaded before can be used)"
    )


def _check_head(name: str, hub: dict[str, Any]) -> None:
    """Refuses a model that cannot score pairs: sentence-transformers would give it a head of random weights."""
    architectures = (_json_of(name, "config.json", hub) or {}).get("architectures") or ()
    if not architectures or any(each.endswith(_HEADS) for each in architectures):
        return
    if (_json_of(name, "config_sentence_transformers.json", hub) or {}).get("model_type") != _CLASS_OF_KIND["cross"]:
        raise InputError(f"kind='cross', but model {name!r} is a {architectures[0]}, which has no head to score pairs")


def _json_of(name: str, file: str, hub: dict[str, Any]) -> Any:
    """What a file of the model says; None: it has none. A hub that cannot be reached is not asked again."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HFValidationError, LocalEntryNotFoundError

    path = Path(name, file)
    if not Path(name).is_dir():
        try:
            path = Path(hf_hub_download(name, file, **hub))
        except LocalEntryNotFoundError:
            hub["local_files_only"] = True
            return None
        except (EntryNotFoundError, HFValidationError):
            return None
    return json.loads(path.read_text("utf-8")) if path.exists() else None


@contextmanager
def _clear_errors(name: str, settings: Settings, token: str | bool | None) -> Iterator[None]:
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    try:
        yield
    except (GatedRepoError, RepositoryNotFoundError) as error:
        variables = getattr(settings.token, "names", HUB_TOKEN.names)
        what = "is gated" if isinstance(error, GatedRepoError) else "is not on the Hugging Face hub, or is private"
        if token:
            advice = "the token given does not open it; ask for access on its page"
        else:
            advice = f"if you have access, set the environment variable {' or '.join(variables)}, or give token="
        raise ModelError(f"model {name!r} {what}; {advice}") from error
    except OSError as error:
        raise ModelError(f"model {name!r} cannot be loaded: {' '.join(str(error).split())}") from error


def _label(loaded: Any, settings: Settings) -> int | None:
    """The position of the label whose probability is the score; None where there is one label."""
    if loaded.num_labels == 1:
        if settings.label is not None:
            raise InputError(f"label={settings.label!r} is for cross-encoders with several labels; this one has one")
        return None
    names = getattr(loaded.config, "id2label", None) or {}
    labels = [str(names.get(position, position)) for position in range(loaded.num_labels)]
    if settings.label in labels:
        return labels.index(str(settings.label))
    if isinstance(settings.label, int) and 0 <= settings.label < len(labels):
        return settings.label
    raise InputError(
        f"the cross-encoder has {len(labels)} labels, {', '.join(map(repr, labels))}; label= must name the one whose "
        f"probability is the score, got {settings.label!r}"
    )


def _check(model: Model, settings: Settings) -> None:
    if settings.kind not in ("auto", model.kind):
        raise InputError(f"kind={settings.kind!r}, but the model given is a {type(model.loaded).__name__}")
    if model.loaded.dtype is not None and model.dtype != settings.dtype:
        raise InputError(
            f"dtype={settings.dtype!r}, but the model given is loaded in {model.dtype}; give dtype={model.dtype!r}"
        )
    if len(settings.devices) == 1 and settings.model is model.loaded and not _same_device(model, settings.devices[0]):
        raise InputError(f"device={settings.devices[0]!r}, but the model given is on {model.devices[0]}; move it first")
    if model.kind == "cross":
        if settings.truncate_dim is not None:
            raise InputError("truncate_dim is for bi-encoders; a cross-encoder has no embeddings")
        if isinstance(settings.prompt, tuple):
            raise InputError("a cross-encoder reads both answers at once: prompt must be one string")
    elif settings.label is not None:
        raise InputError(
            f"label={settings.label!r} is for cross-encoders with several labels; the model is a bi-encoder"
        )
    if settings.fast_fp32 and model.devices[0] != "cpu":
        raise InputError(f"fast_fp32 is for the CPU; the model is on {model.devices[0]}")


def _same_device(model: Model, device: str) -> bool:
    import torch

    asked, found = torch.device(device), model.loaded.device
    return bool(asked.type == found.type and asked.index in (None, found.index or 0))
