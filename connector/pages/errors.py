"""What a page says instead when it cannot do what was asked; the words are in `templates/error.html`."""

from collections.abc import Mapping
from typing import Literal

Problem = Literal[
    "bad_request",
    "expired",
    "forged",
    "method",
    "no_cookie",
    "not_found",
    "provider_unavailable",
    "setup_link_spent",
    "too_large",
    "too_many",
    "unavailable",
    "unknown_client",
    "unreachable_client",
    "unreadable",
]


class PageError(Exception):
    """A request that ends in the error page.

    `detail` is for whoever mends the client: an OAuth error and its description, shown escaped.
    """

    def __init__(
        self, status: int, problem: Problem, detail: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(problem)
        self.status = status
        self.problem: Problem = problem
        self.detail = detail
        self.headers = dict(headers or {})
