"""The local embedder on the real weights."""

import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from store.embedders.local import LocalEmbedder
from store.embedders.protocol import Embedder

SENTENCES = {
    "billing": {
        "en": "We chose PostgreSQL for the billing service because it has transactions.",
        "es": "Elegimos PostgreSQL para el servicio de facturación porque tiene transacciones.",
        "pt": "Escolhemos o PostgreSQL para o serviço de faturamento porque ele tem transações.",
        "zh": "我们为计费服务选择了 PostgreSQL，因为它支持事务。",
        "ja": "請求サービスにはトランザクションがあるため PostgreSQL を選びました。",
    },
    "allergy": {
        "en": "My daughter is allergic to peanuts and carries an injector.",
        "es": "Mi hija es alérgica a los cacahuetes y lleva un inyector.",
        "pt": "Minha filha é alérgica a amendoim e carrega um injetor.",
        "zh": "我女儿对花生过敏，随身携带注射器。",
        "ja": "娘はピーナッツアレルギーで、注射器を持ち歩いています。",
    },
    "train": {
        "en": "The night train to Vienna leaves at half past nine from platform four.",
        "es": "El tren nocturno a Viena sale a las nueve y media del andén cuatro.",
        "pt": "O trem noturno para Viena parte às nove e meia da plataforma quatro.",
        "zh": "开往维也纳的夜车九点半从四号站台发车。",
        "ja": "ウィーン行きの夜行列車は九時半に四番線から出ます。",
    },
}
LANGUAGES = ("en", "es", "pt", "zh", "ja")


def test_it_fits_what_the_engine_asks_of_an_embedder(embedder: LocalEmbedder) -> None:
    wanted: Embedder = embedder
    assert (wanted.name, wanted.dimensions) == ("multilingual-e5-small-int8", 384)


@pytest.mark.parametrize(
    ("asked", "stored"), [*combinations(LANGUAGES, 2), *combinations(LANGUAGES[::-1], 2)]
)
def test_a_query_finds_its_translation_before_unrelated_sentences(
    embedder: LocalEmbedder, asked: str, stored: str
) -> None:
    queries = embedder.embed_queries([texts[asked] for texts in SENTENCES.values()])
    passages = embedder.embed_passages([texts[stored] for texts in SENTENCES.values()])
    assert (queries @ passages.T).argmax(axis=1).tolist() == list(range(len(SENTENCES)))


def test_a_question_finds_its_answer(embedder: LocalEmbedder) -> None:
    passages = embedder.embed_passages([texts["en"] for texts in SENTENCES.values()])
    questions = ["which database did we pick?", "can she eat nuts?", "when do I have to be at the station?"]
    assert (embedder.embed_queries(questions) @ passages.T).argmax(axis=1).tolist() == [0, 1, 2]


@pytest.mark.parametrize("mode", ["embed_queries", "embed_passages"])
def test_vectors_are_float32_rows_of_unit_length(embedder: LocalEmbedder, mode: str) -> None:
    embed: Callable[[Sequence[str]], np.ndarray] = getattr(embedder, mode)
    vectors = embed(["", "one", "two words", "三 " * 400])
    assert vectors.dtype == np.float32
    assert vectors.shape == (4, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


def test_no_texts_are_no_rows(embedder: LocalEmbedder) -> None:
    assert embedder.embed_queries([]).shape == (0, 384)
    assert embedder.embed_passages([]).shape == (0, 384)


def test_a_text_has_one_vector_whatever_stands_beside_it(embedder: LocalEmbedder) -> None:
    texts = [texts[language] for texts in SENTENCES.values() for language in LANGUAGES]
    alone = np.concatenate([embedder.embed_passages([text]) for text in texts])
    assert np.array_equal(embedder.embed_passages(texts), alone)
    assert np.array_equal(embedder.embed_passages(texts[::-1])[::-1], alone)


def test_queries_and_passages_are_embedded_differently(embedder: LocalEmbedder) -> None:
    text = ["the night train to Vienna"]
    assert not np.allclose(embedder.embed_queries(text), embedder.embed_passages(text), atol=1e-3)


def test_only_the_first_512_tokens_count(embedder: LocalEmbedder) -> None:
    start = "the night train to Vienna " * 120
    assert np.array_equal(
        embedder.embed_passages([start + "leaves at nine"]), embedder.embed_passages([start + "is late"])
    )


def test_many_threads_get_the_vectors_that_one_gets(embedder: LocalEmbedder) -> None:
    texts = [
        f"{texts[language]} {n}" for n in range(4) for texts in SENTENCES.values() for language in LANGUAGES
    ]
    expected = [embedder.embed_queries([text]) for text in texts]
    with ThreadPoolExecutor(8) as callers:
        found = list(callers.map(lambda text: embedder.embed_queries([text]), texts))
    assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))


def test_it_needs_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert LocalEmbedder(tmp_path).embed_queries(["hello"]).shape == (1, 384)


def test_a_search_overtakes_an_import(encoder_dir: Path) -> None:
    embedder = LocalEmbedder(encoder_dir, threads=1)
    order: list[str] = []
    with ThreadPoolExecutor(1) as importer:
        done = importer.submit(embedder.embed_passages, ["the night train to Vienna " * 200] * 6)
        done.add_done_callback(lambda _: order.append("import"))
        embedder.embed_queries(["when does it leave?"])
        order.append("search")
    assert order == ["search", "import"]


@pytest.mark.parametrize(
    "text", ["\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}" * 100, "a" * 2**19, "\ud800", "\x00"]
)
def test_hostile_texts_have_vectors_too(embedder: LocalEmbedder, text: str) -> None:
    assert np.linalg.norm(embedder.embed_queries([text])) == pytest.approx(1, abs=1e-5)
    assert np.linalg.norm(embedder.embed_passages([text])) == pytest.approx(1, abs=1e-5)
