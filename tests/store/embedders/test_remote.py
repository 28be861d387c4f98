"""Embedders over the network: Google's own client and plain HTTP, against a service of this machine."""

import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from store.embedders.gemini import GeminiEmbedder
from store.embedders.openai import OpenAIEmbedder
from store.embedders.protocol import Embedder
from store.embedders.remote import Patience
from store.errors import StoreError
from store.gemini import client
from tests.store.stub import Answer, Service, serving

KEY = "a-secret-key"
HASTY = Patience(query=0.1, passages=0.1)
Make = Callable[[Service], Embedder]


@pytest.fixture
def service() -> Iterator[Service]:
    with serving() as served:
        yield served


def vector(text: str) -> list[float]:
    return [float(len(text)), 3.0, 4.0]


def gemini_answer(body: Any) -> Answer:
    texts = [request["content"]["parts"][0]["text"] for request in body["requests"]]
    return 200, {"embeddings": [{"values": vector(text)} for text in texts]}


def openai_answer(body: Any) -> Answer:
    rows = [{"index": at, "embedding": vector(text)} for at, text in enumerate(body["input"])]
    return 200, {"data": rows[::-1]}


def gemini(service: Service, model: str = "gemini-embedding-001") -> Embedder:
    return GeminiEmbedder(client(KEY, base_url=service.url), model, 3, HASTY)


def openai(service: Service) -> Embedder:
    return OpenAIEmbedder(f"{service.url}/v1/", KEY, "a-model", 3, HASTY)


SERVICES = pytest.mark.parametrize(
    ("make", "right"), [(gemini, gemini_answer), (openai, openai_answer)], ids=["gemini", "openai"]
)


@SERVICES
def test_texts_become_unit_vectors_in_their_order(
    service: Service, make: Make, right: Callable[[Any], Answer]
) -> None:
    service.answers = [right]
    texts = ["x" * (number % 7) for number in range(1, 250)]
    vectors = make(service).embed_passages(texts)
    expected = np.array([vector(text) for text in texts], np.float32)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, rtol=1e-6)
    assert len(service.requests) in (3, 4)


@SERVICES
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_failure_is_asked_again(
    service: Service, make: Make, right: Callable[[Any], Answer], status: int
) -> None:
    service.answers = [(status, {"error": {"code": status, "message": "later"}}), right]
    assert make(service).embed_queries(["hello"]).shape == (1, 3)
    assert len(service.requests) == 2


@SERVICES
@pytest.mark.parametrize(
    "answer",
    [
        (503, {"error": {"code": 503, "message": "away"}}),
        (400, {"error": {"code": 400, "message": "no"}}),
        (401, {"error": {"code": 401, "message": f"the key {KEY} is wrong"}}),
        (200, {}),
        (200, {"embeddings": [], "data": []}),
        (200, {"embeddings": [{"values": [1.0]}], "data": [{"index": 0, "embedding": [1.0]}]}),
        (200, {"embeddings": [{"values": [0.0] * 3}], "data": [{"index": 0, "embedding": [0.0] * 3}]}),
        (200, b"<html>"),
    ],
)
def test_what_cannot_be_embedded_is_unavailable_and_tells_no_secret(
    service: Service,
    make: Make,
    right: Callable[[Any], Answer],
    answer: Answer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    service.answers = [answer]
    with caplog.at_level(logging.DEBUG, "store"), pytest.raises(StoreError) as refused:
        make(service).embed_queries(["a private thought"])
    assert refused.value.code == "unavailable"
    told = refused.value.message + str([record.__dict__ for record in caplog.records])
    assert KEY not in told and "private thought" not in told


@SERVICES
def test_a_service_that_is_not_there_is_unavailable(make: Make, right: Callable[[Any], Answer]) -> None:
    with pytest.raises(StoreError, match="does not answer"):
        make(Service("http://127.0.0.1:9")).embed_queries(["hello"])


def test_each_gemini_model_is_asked_in_its_own_way(service: Service) -> None:
    service.answers = [gemini_answer]
    gemini(service).embed_queries(["where"])
    gemini(service).embed_passages(["here"])
    second = gemini(service, "gemini-embedding-2")
    second.embed_queries(["where", "when"])
    second.embed_passages(["here"])
    asked = [
        [(each["content"]["parts"][0]["text"], each.get("taskType")) for each in body["requests"]]
        for _, _, body in service.requests
    ]
    assert asked == [
        [("where", "RETRIEVAL_QUERY")],
        [("here", "RETRIEVAL_DOCUMENT")],
        [("task: search result | query: where", None), ("task: search result | query: when", None)],
        [("title: none | text: here", None)],
    ]
    assert {body["requests"][0]["outputDimensionality"] for _, _, body in service.requests} == {3}
    assert {path.split("/")[-1].split(":")[0] for path, _, _ in service.requests} == {
        "gemini-embedding-001",
        "gemini-embedding-2",
    }


def test_the_key_is_sent_in_a_header_and_never_in_the_address(service: Service) -> None:
    service.answers = [gemini_answer]
    gemini(service).embed_queries(["where"])
    service.answers = [openai_answer]
    openai(service).embed_queries(["where"])
    OpenAIEmbedder(service.url, None, "local", 3, HASTY).embed_queries(["where"])
    (to_gemini, gemini_headers, _), (to_openai, openai_headers, _), (_, without, _) = service.requests
    assert gemini_headers["x-goog-api-key"] == KEY and KEY not in to_gemini
    assert (openai_headers["authorization"], to_openai) == (f"Bearer {KEY}", "/v1/embeddings")
    assert "authorization" not in without


def test_models_and_dimensions_have_names_of_their_own(service: Service) -> None:
    made = [gemini(service), gemini(service, "gemini-embedding-2"), openai(service)]
    names = {embedder.name for embedder in made} | {OpenAIEmbedder("http://x", None, "a-model", 4).name}
    assert len(names) == 4
