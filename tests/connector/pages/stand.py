"""The pages on a stand: the real authorization server, a clock to turn, and people with browsers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin

import httpx2
from argon2 import PasswordHasher
from starlette.applications import Starlette
from starlette.testclient import TestClient

from connector.deletion import AccountDeletion
from connector.identity.admission import Admission
from connector.identity.passphrase import PassphraseProvider
from connector.identity.setup import set_passphrase
from connector.limits import MatterLimit
from connector.pages.public_texts import PublicTexts
from connector.pages.routes import PageContext, routes
from oauth.routes import routes as oauth_routes
from oauth.server import AuthorizationServer
from store.engine import Engine
from store.memory import Draft
from store.sqlite.database import Database
from store.sqlite.memories import SQLiteMemories
from store.sqlite.owners import SQLiteOwners
from store.sqlite.records import SQLiteRecords
from store.tombstones import FileTombstones
from tests.oauth.stand import SCOPES, STATE_KEY, Clock, Host
from tests.oauth.web import Web

PASSPHRASE = "correct horse battery staple"
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


class Form(HTMLParser):
    """The page's main form as a browser would send it: hidden fields and ticked boxes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.action = ""
        self.fields: list[tuple[str, str]] = []
        self.boxes: list[str] = []
        self.buttons: list[str] = []
        self.feed(page.partition("<main>")[2].partition("</main>")[0])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.action = values.get("action", "")
        if tag == "button" and "hidden" not in values:
            self.buttons.append(values.get("value", ""))
        if tag == "input" and values.get("type") == "checkbox":
            self.boxes.append(values["value"])
        if tag == "input" and (values.get("type") == "hidden" or "checked" in values):
            self.fields.append((values["name"], values["value"]))

    def replace(self, **fields: str) -> list[tuple[str, str]]:
        """The fields with some of them set."""
        kept = [(name, value) for name, value in self.fields if name not in fields]
        return [*kept, *fields.items()]


@dataclass
class Person:
    """Somebody at a browser of their own."""

    http: TestClient
    origin: str

    def get(self, url: str) -> httpx2.Response:
        return self.http.get(url)

    def follow(self, response: httpx2.Response) -> httpx2.Response:
        """Goes on while the answer leads to another of our pages."""
        for _ in range(5):
            location = urljoin(self.origin, response.headers.get("location", "//elsewhere"))
            if not location.startswith(self.origin + "/"):
                return response
            response = self.http.get(location)
        raise AssertionError("the pages lead in a circle")

    def open(self, url: str) -> httpx2.Response:
        return self.follow(self.get(url))

    def post(self, path: str, fields: Sequence[tuple[str, str]], **headers: str) -> httpx2.Response:
        """A form from our own page, unless a header says otherwise."""
        named = {"Origin": self.origin, "Content-Type": "application/x-www-form-urlencoded"}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.post(path, content=urlencode(fields), headers=named)

    def submit(self, page: httpx2.Response, **fields: str) -> httpx2.Response:
        """Fills in the page's form and sends it."""
        assert page.status_code in (200, 400, 403, 429), page.text
        form = Form(page.text)
        return self.post(urljoin(str(page.url), form.action), form.replace(**fields))

    def sign_in(self, passphrase: str = PASSPHRASE, **fields: str) -> httpx2.Response:
        return self.submit(self.open("/sign-in"), passphrase=passphrase, **fields)

    def consent_page(self, url: str) -> httpx2.Response:
        """Opens a client's request, signing in on the way if asked to."""
        page = self.open(url)
        if 'name="passphrase"' in page.text:
            page = self.follow(self.submit(page, passphrase=PASSPHRASE))
        assert Form(page.text).action == "/consent", page.text
        return page

    def plant(self, name: str, value: str) -> None:
        """Puts a cookie into the browser."""
        host = self.origin.partition("://")[2]
        self.http.cookies.set(name, value, domain=host, path="/")

    @property
    def is_signed_in(self) -> bool:
        return "Signed in as" in self.get("/").text


@dataclass
class Stand:
    """One installation, and what surrounds it."""

    path: Path
    issuer: str = "https://memory.example.org"
    clock: Clock = field(default_factory=Clock)
    public_texts: PublicTexts = field(default_factory=PublicTexts)

    def __post_init__(self) -> None:
        self.web = Web()
        self.database = Database(self.path / "vademecum.db", self.clock)
        self.records = SQLiteRecords(self.database)
        self.owners = SQLiteOwners(self.database)
        self.engine = Engine(SQLiteMemories(self.database), None, self.clock)
        self.server = AuthorizationServer(
            issuer=self.issuer,
            resource=f"{self.issuer}/mcp",
            scopes=SCOPES,
            records=self.records,
            state_key=STATE_KEY,
            now=self.clock,
            fetcher=self.web.fetcher(),
        )
        self.provider = PassphraseProvider(self.records, self.owners, self.clock, CHEAP)
        self.context = PageContext(
            server=self.server,
            records=self.records,
            owners=self.owners,
            engine=self.engine,
            provider=self.provider,
            deletion=AccountDeletion(
                self.server, self.owners, FileTombstones(self.path), self.path, self.clock
            ),
            public_texts=self.public_texts,
            admission=Admission(self.provider.name, self.records, self.owners, self.clock),
            state_key=STATE_KEY,
            public_url=self.issuer,
            now=self.clock,
            limit=MatterLimit(self.clock.monotonic).spend,
        )
        self.app = Starlette(routes=[*oauth_routes(self.server, self.clock.monotonic), *routes(self.context)])

    @property
    def http(self) -> TestClient:
        return TestClient(self.app, base_url=self.issuer, follow_redirects=False)

    def person(self) -> Person:
        """Somebody with a browser that was never here."""
        return Person(self.http, self.issuer)

    def set_up(self) -> str:
        """The first owner, with a passphrase."""
        return set_passphrase(self.provider, None, PASSPHRASE)

    def add_owner(self, name: str, passphrase: str) -> str:
        """Another owner, who signed in with another provider before."""
        owner = self.owners.create("firebase", "https://issuer.example", name, name)
        return set_passphrase(self.provider, owner.id, passphrase)

    def remember(self, owner: str, content: str, **values: Any) -> str:
        """A memory of this owner; returns its id."""
        space = self.engine.spaces(owner)[0].id
        return self.engine.save(owner, space, "test", Draft(content, **values)).memory.id

    def host(self, **metadata: Any) -> Host:
        """A registered client."""
        host = Host(self.server, self.http)
        answer = host.register(**metadata)
        assert answer.status_code == 201, answer.text
        return host

    def url(self, host: Host, **changes: str | None) -> str:
        """The address that the client opens in the owner's browser."""
        return "/authorize?" + urlencode(host.params(resource=f"{self.issuer}/mcp", **changes))
