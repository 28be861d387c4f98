"""One page as an ASGI endpoint: parse, check the form, one hop to a worker thread, answer, harden.

No page can forget a check, because none makes its own: a form is handed to its handler only after the CSRF
token and the origin have been found good (OAUTH "Authorize").
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from connector.pages import cookies, csrf, forms, headers, languages
from connector.pages.context import PageContext
from connector.pages.errors import PageError
from connector.pages.forms import Parameters
from connector.pages.languages import Language
from connector.pages.sessions import Session
from store.errors import StoreError
from store.owners import Owner

log = logging.getLogger(__name__)

RETRY_AFTER_SECONDS = "10"
REQUEST = "request"
"""The parameter that names a pending matter."""


@dataclass(frozen=True)
class Visit:
    """One request to a page, checked as far as every page needs it."""

    context: PageContext
    path: Mapping[str, str]
    language: Language
    query: Parameters
    form: Parameters
    cookie: str
    """The browser's cookie, or the one that this answer gives it."""
    is_new_browser: bool
    session: Session | None
    owner: Owner | None
    """Who is signed in."""

    @property
    def browser(self) -> str:
        """The key under which this browser's matters are kept."""
        return cookies.digest(self.cookie)

    def is_same_browser(self, key: str) -> bool:
        """Whether what is kept under `key` was begun here."""
        return self.session.is_browser(key) if self.session else key == self.browser

    def render(
        self,
        name: str,
        values: Mapping[str, object] | None = None,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> HTMLResponse:
        """A page with what every page shows."""
        # A page that answers a form is found again by the matter it is about, not by what was filled in.
        parameters = self.query or [pair for pair in self.form if pair[0] == REQUEST]
        everywhere = {
            "public_url": self.context.public_url,
            "owner": self.owner,
            "csrf": lambda form, pending_id="": self._token(form, pending_id),
            "languages": languages.switch(parameters),
        }
        template = self.context.templates[self.language.code].get_template(name)
        return HTMLResponse(template.render(everywhere | dict(values or {})), status, headers)

    def _token(self, form: str, pending_id: str) -> str:
        return csrf.token(self.context.csrf_key, self.cookie, f"{form}:{pending_id}")


def redirect(url: str) -> RedirectResponse:
    """303, so that no browser repeats a form's content elsewhere (RFC 9700 §4.12)."""
    return RedirectResponse(url, 303)


Handler = Callable[[Visit], Response]
Preparation = Callable[[PageContext, Parameters], Awaitable[None]]
"""What a page needs from other hosts, given its query or form; awaited before the worker thread."""
Limit = Callable[[Request], None]
"""Counts a request before anything is done for it, and raises `PageError` for one too many."""


@dataclass(frozen=True)
class Page:
    """A page and its form; `form` is the CSRF purpose, None for the one form that other sites may send."""

    context: PageContext
    get: Handler | None = None
    post: Handler | None = None
    form: str | None = None
    prepare: Preparation | None = None
    limit: Limit | None = None
    is_opened_by_clients: bool = False
    policy: str = headers.CONTENT_SECURITY_POLICY
    stale: Handler | None = None
    """Answers a form of ours whose token is out of date, for somebody signed in; it must change nothing."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        request = Request(scope, receive)
        language = languages.preferred(request, self.context.language_cookie)
        try:
            response = await self._answer(request, language)
        except PageError as error:
            response = self._error(error, language)
        except StoreError as error:
            if error.code != "unavailable":
                raise
            log.error("store.unavailable")
            unavailable = PageError(503, "unavailable", headers={"Retry-After": RETRY_AFTER_SECONDS})
            response = self._error(unavailable, language)
        response.headers["Content-Language"] = language.tag
        response.headers["Vary"] = "Accept-Language, Cookie"
        if (chosen := languages.chosen(request)) is not None:
            self.context.language_cookie.write(response, chosen)
        headers.harden(
            response.headers,
            is_https=self.context.is_https,
            is_opened_by_clients=self.is_opened_by_clients,
            policy=self.policy,
        )
        await response(scope, receive, send)

    async def _answer(self, request: Request, language: Language) -> Response:
        handler = {"GET": self.get, "HEAD": self.get, "POST": self.post}.get(request.method)
        if handler is None:
            raise PageError(405, "method", headers={"Allow": self._allowed})
        if self.limit is not None:
            self.limit(request)
        query = forms.read_query(request)
        form = await forms.read_form(request) if request.method == "POST" else ()
        if self.prepare is not None:
            await self.prepare(self.context, form or query)
        return await run_in_threadpool(self._serve, handler, request, language, query, form)

    def _serve(
        self, handler: Handler, request: Request, language: Language, query: Parameters, form: Parameters
    ) -> Response:
        """Everything that touches a record, in one worker thread."""
        context = self.context
        presented = context.cookie.read(request.headers)
        session = context.sessions.find(presented) if presented else None
        owner = _owner(context, session)
        if request.method == "POST" and self.form is not None and not self._is_good(request, presented, form):
            is_stale = owner is not None and csrf.is_same_origin(request.headers, context.public_url)
            handler = self.stale if self.stale is not None and is_stale else _refuse_form
        visit = Visit(
            context=context,
            path=request.path_params,
            language=language,
            query=query,
            form=form,
            cookie=presented or cookies.new_value(),
            is_new_browser=presented is None,
            session=session if owner else None,
            owner=owner,
        )
        response = self._handle(handler, visit)
        # A form sent from elsewhere comes without the `Lax` cookie; answering it with a new one would sign
        # the browser out.
        if visit.is_new_browser and request.method != "POST":
            context.cookie.write(response, visit.cookie)
        return response

    def _handle(self, handler: Handler, visit: Visit) -> Response:
        try:
            return handler(visit)
        except PageError as error:
            return visit.render("error.html", _shown(error), error.status, error.headers)

    def _is_good(self, request: Request, cookie: str | None, form: Parameters) -> bool:
        purpose = f"{self.form}:{forms.first(form, REQUEST)}"
        token = forms.first(form, csrf.FIELD)
        is_ours = cookie is not None and csrf.is_token(self.context.csrf_key, cookie, purpose, token)
        is_same_origin = csrf.is_same_origin(request.headers, self.context.public_url)
        if not is_ours or not is_same_origin:
            log.warning("form.refused", extra={"form": self.form, "token_is_good": is_ours})
        if cookie is None and is_same_origin:
            raise PageError(403, "no_cookie")
        return is_ours and is_same_origin

    @property
    def _allowed(self) -> str:
        return ", ".join(["GET", "HEAD"] * bool(self.get) + ["POST"] * bool(self.post))

    def _error(self, error: PageError, language: Language) -> Response:
        """The error page of a request that was not looked into: it shows nothing of the browser's."""
        shown = {
            "public_url": self.context.public_url,
            "owner": None,
            "languages": languages.switch(()),
            **_shown(error),
        }
        template = self.context.templates[language.code].get_template("error.html")
        return HTMLResponse(template.render(shown), error.status, error.headers)


def _shown(error: PageError) -> Mapping[str, object]:
    return {"problem": error.problem, "detail": error.detail}


def _refuse_form(visit: Visit) -> Response:
    raise PageError(403, "forged")


def _owner(context: PageContext, session: Session | None) -> Owner | None:
    """The session's owner; None once the account is gone."""
    if session is None:
        return None
    try:
        return context.owners.get(session.owner)
    except StoreError:
        return None
