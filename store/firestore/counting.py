"""What `memory_status` tells, counted over indexes and from the counter that each topic has."""

from collections import Counter
from collections.abc import Sequence
from functools import partial

from store.firestore.database import Ask, Tenant
from store.firestore.stored import hashed, moment
from store.memory import STATES, Space, State, Status

COMMONEST_TOPICS = 50


def status(tenant: Tenant, spaces: Sequence[Space]) -> Status:
    """Counts of what is not forgotten."""
    counts: Counter[State] = Counter()
    pairs = [(space.id, state) for space in spaces for state in STATES]
    numbers = tenant.database.at_once(*(partial(_count, tenant, *pair) for pair in pairs))
    for (_, state), number in zip(pairs, numbers, strict=True):
        counts[state] += number
    latest = [
        moment(each.get("updated_at"))
        for space in spaces
        for each in tenant.ask(
            Ask("memories", (("shelf", "==", space.id),), ("updated_at", "DESCENDING"), limit=1)
        )
    ]
    return Status(
        {state: number for state, number in counts.items() if number},
        _topics(tenant, spaces),
        max((each for each in latest if each is not None), default=None),
        tuple(spaces),
    )


def _count(tenant: Tenant, space: str, state: State) -> int:
    ask = Ask("memories", (("shelf", "==", space), ("state", "==", state)))
    return tenant.database.count(ask, tenant.reference)[0]


def _topics(tenant: Tenant, spaces: Sequence[Space]) -> tuple[tuple[str, int], ...]:
    """The commonest; a topic that is common in one space is counted in the others too."""
    met: set[str] = set()
    for space in spaces:
        ask = Ask("topics", (("shelf", "==", space.id),), ("active", "DESCENDING"), limit=COMMONEST_TOPICS)
        met |= {each.get("topic") for each in tenant.ask(ask)}
    counted: Counter[str] = Counter()
    names = (hashed("topic", space.id, topic) for space in spaces for topic in met)
    for each in tenant.database.get_all(tenant.document("topics", name) for name in names):
        counted[each.get("topic")] += each.get("active")
    ordered = sorted(counted.items(), key=lambda each: (-each[1], each[0]))
    return tuple((topic, number) for topic, number in ordered if number > 0)[:COMMONEST_TOPICS]
