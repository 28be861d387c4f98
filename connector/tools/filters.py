"""The filters that searching and listing share."""

from typing import Annotated

from pydantic import Field, StringConstraints

from connector.tools.dates import From, Until
from connector.tools.tool import Arguments
from store.memory import Filters, Kind, Origin, State

Topic = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Tag = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Tags = Annotated[tuple[Tag, ...], Field(max_length=32)]


class FilterArguments(Arguments):
    """What a search or a list is limited to."""

    filter_topic: Topic | None = None
    filter_state: State = "active"
    filter_kind: Kind | None = None
    filter_tags: Tags = ()
    filter_origin: Origin | None = None
    created_after: Annotated[From, Field(description="RFC 3339 time or date")] = None
    created_before: Annotated[Until, Field(description="RFC 3339 time or date")] = None
    valid_at: Annotated[From, Field(description="RFC 3339 time or date")] = None

    def filters(self) -> Filters:
        """As the engine takes them."""
        return Filters(
            state=self.filter_state,
            topic=self.filter_topic,
            kind=self.filter_kind,
            tags=self.filter_tags,
            origin=self.filter_origin,
            created_after=self.created_after,
            created_before=self.created_before,
            valid_at=self.valid_at,
        )
