"""Models of a few thousand weights, made on the spot, in the formats in which real ones come."""

from __future__ import annotations

import json
import string
from pathlib import Path

LABELS = ("contradiction", "entailment", "neutral")
WORDS = ("paris", "rome", "the", "city", "of", "capital", "italy", "france", "nine", "none")
MAX_TOKENS = 32


def save_cross_encoder(folder: Path, labels: int, *, architectures: bool = True) -> Path:
    """A cross-encoder whose logits span several units around 0: those of a random head would be nearly the same."""
    import torch
    from transformers import BertForSequenceClassification

    config = _config()
    if labels > 1:
        config.id2label = dict(enumerate(LABELS))
        config.label2id = {label: position for position, label in enumerate(LABELS)}
    config.num_labels = labels
    torch.manual_seed(labels)
    model = BertForSequenceClassification(config).eval()
    tokenizer = _tokenizer()
    some = tokenizer(list(WORDS), list(reversed(WORDS)), padding=True, return_tensors="pt")
    with torch.no_grad():
        model.classifier.weight *= 10
        model.classifier.bias -= model(**some).logits.mean(dim=0)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if not architectures:
        path = folder / "config.json"
        saved = json.loads(path.read_text())
        del saved["architectures"]
        path.write_text(json.dumps(saved))
    return folder


def save_bi_encoder(folder: Path, prompts: dict[str, str] | None = None) -> Path:
    """A transformer with mean pooling."""
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers import BertModel

    torch.manual_seed(0)
    transformer = folder.with_name(f"{folder.name}-transformer")
    BertModel(_config()).eval().save_pretrained(transformer)
    _tokenizer().save_pretrained(transformer)
    SentenceTransformer(str(transformer), device="cpu", prompts=prompts).save(str(folder))
    return folder


def save_static(folder: Path) -> Path:
    """A bi-encoder without a transformer: the mean of embeddings of tokens."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    torch.manual_seed(0)
    SentenceTransformer(modules=[StaticEmbedding(_tokenizer(), embedding_dim=16)], device="cpu").save(str(folder))
    return folder


def _vocabulary() -> list[str]:
    letters = [*string.ascii_lowercase, *string.digits, *string.punctuation]
    return ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + letter for letter in letters), *WORDS]


def _config():  # transformers is imported where it is used
    from transformers import BertConfig

    return BertConfig(
        vocab_size=len(_vocabulary()),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=MAX_TOKENS,
        initializer_range=0.1,
    )


def _tokenizer():
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    numbers = {word: number for number, word in enumerate(_vocabulary())}
    tokenizer = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = [("[CLS]", numbers["[CLS]"]), ("[SEP]", numbers["[SEP]"])]
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", special)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=MAX_TOKENS,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
