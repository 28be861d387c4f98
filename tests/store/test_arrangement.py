"""What moves in the final order, and what stays."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from store.arrangement import Placed, arrange
from store.memory import Memory, Source
from store.ranking import Ranked

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def placed(
    name: str,
    fused: float,
    text: str | None = None,
    score: float | None = None,
    pinned: bool = False,
    last_used_at: datetime | None = None,
) -> Placed:
    memory = Memory(
        id=name,
        owner="o",
        space="s",
        content=text or name,
        topic="general",
        state="active",
        kind="note",
        tags=(),
        modality="text",
        artifact_refs=(),
        pinned=pinned,
        source=Source(),
        valid_from=None,
        valid_until=None,
        superseded_by=None,
        created_at=NOW,
        updated_at=NOW,
        last_used_at=last_used_at,
        revision=1,
    )
    ranked = Ranked(1, 1, fused if score is None else score, {"fused": fused})
    return Placed(ranked, memory, text or name)


def names(found: list[Placed]) -> list[str]:
    return [each.memory.id for each in found]


def test_a_pinned_memory_passes_one_that_is_hardly_better_and_no_other() -> None:
    found = [placed("best", 0.9), placed("good", 0.62), placed("pinned", 0.6, pinned=True)]
    assert names(arrange(found, NOW, 3)) == ["best", "pinned", "good"]


def test_what_was_read_today_passes_what_was_read_long_ago() -> None:
    found = [
        placed("long ago", 0.5, last_used_at=NOW - timedelta(days=365)),
        placed("today", 0.49, last_used_at=NOW - timedelta(hours=1)),
    ]
    assert names(arrange(found, NOW, 2)) == ["today", "long ago"]


def test_copies_do_not_use_up_the_limit() -> None:
    copies = [placed(f"copy {n}", 0.9 - n / 100, "the gate code is 4711") for n in range(5)]
    found = [*copies, placed("other", 0.5, "the gate is painted green")]
    assert names(arrange(found, NOW, 2)) == ["copy 0", "other"]
    assert names(arrange(found, NOW, 6)) == ["copy 0", "other", "copy 1", "copy 2", "copy 3", "copy 4"]


def test_texts_that_differ_in_what_matters_are_no_copies() -> None:
    found = [
        placed("a", 0.9, "the gate code is 4711"),
        placed("b", 0.8, "the gate code is 1234"),
        placed("c", 0.7),
    ]
    assert names(arrange(found, NOW, 2)) == ["a", "b"]


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.booleans(), st.sampled_from("abc"))),
    st.integers(1, 9),
)
def test_scores_stay_between_0_and_1_and_never_rise(
    rows: list[tuple[float, float, bool, str]], limit: int
) -> None:
    found = [
        placed(str(n), fused, text, score, pinned=pinned)
        for n, (fused, score, pinned, text) in enumerate(rows)
    ]
    scores = [each.ranked.score for each in arrange(found, NOW, limit)]
    assert len(scores) == min(limit, len(rows))
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
