"""The pages on a stand: the real authorization server, a clock to turn, and people with browsers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html.parser import HTMLParser
from typing import Any, cast
from urllib.parse import urlencode, urljoin

import httpx2
from argon2 import PasswordHasher
from starlette.applications import Starlette
from starlette.testclient import TestClient

from connector.identity.passphrase import PassphraseProvider
from connector.identity.setup import set_passphrase
from connector.pages.routes import PageContext, routes
from oauth import clients
from oauth.clients import Client
from oauth.routes import routes as oauth_routes
from oauth.server import AuthorizationServer
from store.engine import Engine
from store.errors import StoreError
from store.memory import Memory, Source, Space
from store.owners import Owner, Owners
from tests.oauth.stand import STATE_KEY, Clock, Host, MemoryRecords, make_server

PASSPHRASE = "correct horse battery staple"
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@dataclass
class FakeOwners:
    """`Owners` in a list."""

    now: Clock
    owners: dict[tuple[str, str, str], Owner] = field(default_factory=dict)

    def find(self, provider: str, issuer: str, subject: str) -> Owner | None:
        return self.owners.get((provider, issuer, subject))

    def create(self, provider: str, issuer: str, subject: str, label: str) -> Owner:
        owner = Owner(f"owner-{len(self.owners) + 1}", label, self.now())
        return self.owners.setdefault((provider, issuer, subject), owner)

    def list(self) -> list[Owner]:
        return [*self.owners.values()]


@dataclass
class FakeEngine:
    """Spaces and memories of each owner."""

    now: Clock
    shelves: dict[str, tuple[Space, ...]] = field(default_factory=dict)
    memories: list[Memory] = field(default_factory=list)

    def spaces(self, owner: str) -> tuple[Space, ...]:
        return self.shelves.setdefault(owner, (Space("space-1", owner, "Personal", self.now()),))

    def fetch(self, owner: str, spaces: Sequence[str], memory_id: str) -> Memory:
        for memory in self.memories:
            if (memory.owner, memory.id) == (owner, memory_id) and memory.space in spaces:
                return memory
        raise StoreError("not_found", "there is no such memory")


def make_memory(owner: str, content: str, now: datetime, **changes: Any) -> Memory:
    """A memory as the engine gives it."""
    values: dict[str, Any] = {
        "id": "memory-1",
        "owner": owner,
        "space": "space-1",
        "content": content,
        "topic": "house",
        "state": "active",
        "kind": "fact",
        "tags": ("keys", "pantry"),
        "modality": "text",
        "artifact_refs": (),
        "pinned": False,
        "source": Source(client_name="Claude"),
        "valid_from": None,
        "valid_until": None,
        "superseded_by": None,
        "created_at": now,
        "updated_at": now,
        "last_used_at": None,
        "revision": 1,
    }
    return Memory(**(values | changes))


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
        if tag == "button" and "disabled" not in values:
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

    @property
    def is_signed_in(self) -> bool:
        return "Signed in as" in self.get("/").text


@dataclass
class Stand:
    """One installation, and what surrounds it."""

    issuer: str = "https://memory.example.org"
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.records = MemoryRecords(self.clock)
        self.owners = FakeOwners(self.clock)
        self.engine = FakeEngine(self.clock)
        self.server: AuthorizationServer = make_server(
            self.records, self.clock, issuer=self.issuer, resource=f"{self.issuer}/mcp"
        )
        self.provider = PassphraseProvider(self.records, cast(Owners, self.owners), self.clock, CHEAP)
        self.context = PageContext(
            server=self.server,
            records=self.records,
            owners=cast(Owners, self.owners),
            engine=cast(Engine, self.engine),
            provider=self.provider,
            state_key=STATE_KEY,
            public_url=self.issuer,
            now=self.clock,
        )
        self.app = Starlette(routes=[*oauth_routes(self.server), *routes(self.context)])

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
        """Another owner, as a command will make one."""
        owner = self.owners.create("passphrase", "local", name, name)
        value = {"owner": owner.id, "subject": name, "hash": self.provider.hash(passphrase)}
        self.records.create("passphrase", owner.id, value, datetime.max.replace(tzinfo=self.clock().tzinfo))
        return owner.id

    def host(self, **metadata: Any) -> Host:
        """A registered client."""
        host = Host(self.server, self.http)
        answer = host.register(**metadata)
        assert answer.status_code == 201, answer.text
        return host

    def url(self, host: Host, **changes: str | None) -> str:
        """The address that the client opens in the owner's browser."""
        return "/authorize?" + urlencode(host.params(resource=f"{self.issuer}/mcp", **changes))

    def client(self, **values: Any) -> Client:
        """A client of the operator, without registration's checks."""
        client = Client(
            client_id="vmc_pre_" + "0" * 32,
            client_name=values.get("client_name", "Entered"),
            redirect_uris=values.get("redirect_uris", ("https://client.example/callback",)),
            token_endpoint_auth_method="none",
            created_at=self.clock(),
        )
        expires_at = datetime.max.replace(tzinfo=self.clock().tzinfo)
        self.records.create(clients.KIND, client.client_id, client.to_value(), expires_at)
        return client
