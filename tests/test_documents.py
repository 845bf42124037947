"""Document, and the values by which documents are compared; its id against Haystack's is in parity/."""

from __future__ import annotations

import pickle
from copy import copy, deepcopy
from hashlib import sha256
from math import nan
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from metrics_core.documents import Document, comparison_values
from metrics_core.errors import InputError
from tests import strategies
from tests.reference import haystack_keys


def test_defaults() -> None:
    document = Document()
    assert (document.content, document.meta, document.score) == (None, {}, None)
    assert document.meta is not Document().meta


def test_arguments() -> None:
    meta = {"key": 1}
    document = Document("x", "a", meta=meta, score=0.5)
    assert (document.id, document.content, document.meta, document.score) == ("x", "a", {"key": 1}, 0.5)
    assert document.meta is meta
    with pytest.raises(TypeError, match="positional"):
        Document("x", "a", {})


@pytest.mark.parametrize("content", [1, 0, b"a", ["a"], nan, False])
def test_content_that_is_no_string(content: Any) -> None:
    with pytest.raises(InputError) as caught:
        Document(content=content)
    assert str(caught.value) == f"content must be a string or None, got {content!r}"


def test_id_is_the_hash_of_content_and_meta() -> None:
    assert Document(content="a").id == sha256(b"aNoneNoneNone{}None").hexdigest()
    assert Document(content="é", meta={"b": 1, "a": [None]}).id == (
        sha256('éNoneNoneNone{"a": [null], "b": 1}None'.encode()).hexdigest()
    )


def test_id_depends_on_content_and_meta_alone() -> None:
    document = Document(content="a", meta={"b": 1, "c": 2})
    assert document.id == Document(content="a", meta={"c": 2, "b": 1}, score=3).id
    others = [Document(content="a"), Document(content="b", meta=document.meta), Document(content="a", meta={"b": 1})]
    assert len({document.id, *(other.id for other in others)}) == 4
    assert Document(content="").id == Document().id


def test_id_is_computed_when_first_asked_for_and_stays() -> None:
    document = Document()
    document.content = "a"
    document.meta["key"] = 1
    first = document.id
    assert first == Document(content="a", meta={"key": 1}).id
    document.content = "b"
    assert document.id == first


def test_a_document_without_an_id_to_compute_can_be_compared_by_content() -> None:
    document = Document(content="\ud800")  # no UTF-8 for it
    assert next(comparison_values("content")([[document]])) == ["\ud800"]
    with pytest.raises(UnicodeEncodeError):
        document.id  # noqa: B018


def test_id_is_read_only() -> None:
    with pytest.raises(AttributeError):
        Document().id = "x"


def test_slots() -> None:
    document = Document()
    assert not hasattr(document, "__dict__")
    with pytest.raises(AttributeError):
        document.text = "a"


FIELDS = {"id": "x", "content": "a", "meta": {"key": [1]}, "score": 1.0}


def test_equality() -> None:
    document = Document(**FIELDS)
    assert document == Document(**deepcopy(FIELDS))
    for other in ({"id": "y"}, {"content": "b"}, {"meta": {}}, {"score": 2.0}, {"score": None}):
        assert document != Document(**FIELDS | other)
    assert Document(content="a") == Document(Document(content="a").id, "a")
    assert document != "a"
    assert document != SimpleNamespace(**FIELDS)
    assert Document(content="a", score=nan) == Document(content="a", score=nan)


def test_a_document_has_no_hash() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Document())


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({}, "Document()"),
        (FIELDS, "Document(id='x', content='a', meta={'key': [1]}, score=1.0)"),
        ({"content": "", "score": 0}, "Document(content='', score=0)"),
        ({"content": "a" * 98}, f"Document(content='{'a' * 98}')"),
        ({"content": "a" * 99}, f"Document(content='{'a' * 96}...)"),
        ({"meta": {"key": "a" * 200}}, f"Document(meta={{'key': '{'a' * 88}...)"),
    ],
)
def test_repr(fields: dict[str, Any], shown: str) -> None:
    assert repr(Document(**fields)) == shown


def test_repr_computes_no_id_and_shows_one_that_was_computed() -> None:
    document = Document(content="a")
    assert repr(document) == "Document(content='a')"
    computed = document.id
    assert repr(document) == f"Document(id={computed!r}, content='a')"


@pytest.mark.parametrize("fields", [{}, FIELDS, {"content": "a"}])
@pytest.mark.parametrize("asked", [True, False])
def test_pickling_and_copying(fields: dict[str, Any], asked: bool) -> None:
    document = Document(**fields)
    if asked:
        assert document.id
    for other in (pickle.loads(pickle.dumps(document)), copy(document), deepcopy(document)):
        assert type(other) is Document
        assert other == document
    assert copy(document).meta is document.meta
    assert deepcopy(document).meta is not document.meta


META = {"a": {"b": {"c": 1}, "n": None, "e": ""}, "1": "one", "": "empty", "a.b": 2}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("content", "text"),
        ("id", "x"),
        ("meta.a", META["a"]),
        ("meta.a.b", {"c": 1}),
        ("meta.a.b.c", 1),
        ("meta.a.n", None),
        ("meta.a.e", ""),
        ("meta.1", "one"),
        ("meta.absent", None),
        ("meta.a.absent", None),
        ("meta.a.b.c.d", None),
        ("meta.a.e.d", None),
        ("meta.absent.b", None),
        ("meta.content", None),
    ],
)
def test_comparison_value(field: str, value: Any) -> None:
    document = Document("x", "text", meta=META)
    assert list(comparison_values(field)([[document, document], []])) == [[value, value], []]


@pytest.mark.parametrize("meta", [None, [], "a", {"a": None}, {"a": [{"b": 1}]}, {"a": "b"}])
def test_a_path_through_what_is_no_dict_leads_to_nothing(meta: Any) -> None:
    assert next(comparison_values("meta.a.b")([[SimpleNamespace(meta=meta)]])) == [None]


@pytest.mark.parametrize("field", ["", "text", "meta", "meta.", "metakey", "Content", "score", "content.a", None, 1])
def test_unknown_field(field: Any) -> None:
    with pytest.raises(InputError) as caught:
        comparison_values(field)
    assert str(caught.value) == (
        f"document_comparison_field must be 'content', 'id' or 'meta.<key>[.<key>...]', got {field!r}"
    )


@given(
    documents=st.lists(strategies.documents().map(lambda fields: SimpleNamespace(**fields))),
    field=st.sampled_from((*strategies.FIELDS, "meta.a", "meta.key.k")),
)
def test_comparison_values_equal_their_twin(documents: list[Any], field: str) -> None:
    values, expected = next(comparison_values(field)([documents])), haystack_keys(documents, field)
    assert len(values) == len(expected)
    assert all(value is other for value, other in zip(values, expected, strict=True))
