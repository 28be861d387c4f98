"""Every page in a real Chromium: axe-core (WCAG 2.2 AA), keyboard, small screens, languages and schemes."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import LoopbackClient
from tests.engines import require
from tests.processes import PASSPHRASE, Server, running

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
TARGET_PIXELS = 24
MEMORY = (
    "The spare key hangs behind the pantry door.\nAsk Ann where that is. " + "Rindfleischetikettierung" * 3
)

LOOKS: list[tuple[str, str, Literal["light", "dark"]]] = [
    ("en", "en", "light"),
    ("pt", "pt", "dark"),
    ("es", "es", "light"),
    ("zh", "zh-Hans", "dark"),
]
"""Each language once, both schemes twice."""


@pytest.fixture(scope="module")
def axe() -> str:
    require(AXE.exists(), "the accessibility tests need axe-core: npm ci in tests/browser")
    return AXE.read_text()


@dataclass
class Visitor:
    """Somebody at a browser, and the installation that they look at."""

    page: Page
    server: Server
    client: LoopbackClient
    memory_id: str

    def goto(self, path: str) -> None:
        self.page.goto(self.server.url + path)

    def send(self, selector: str = "main form .primary") -> None:
        self.page.locator(selector).click()

    def sign_in(self, path: str = "/sign-in") -> None:
        """On to wherever signing in leads from there."""
        self.goto(path)
        self.page.locator("#passphrase").fill(PASSPHRASE)
        self.send()
        self.page.wait_for_url(lambda url: "/sign-in" not in url)


def refused(visitor: Visitor) -> None:
    visitor.goto("/sign-in")
    visitor.page.locator("#passphrase").fill("wrong")
    visitor.send()
    expect(visitor.page.get_by_role("alert")).to_be_visible()


def signing_in_for_an_app(visitor: Visitor) -> None:
    visitor.page.goto(visitor.client.authorization_url)


def question(visitor: Visitor) -> None:
    visitor.sign_in(visitor.client.authorization_url.removeprefix(visitor.server.url))
    visitor.page.locator("summary").click()


def signed_in(visitor: Visitor) -> None:
    visitor.sign_in()


def sign_in_again(visitor: Visitor) -> None:
    visitor.sign_in()
    visitor.goto("/sign-in")


def signed_out(visitor: Visitor) -> None:
    visitor.sign_in()
    visitor.page.locator("form[action='/sign-out'] button").first.click()
    visitor.page.wait_for_url("**/signed-out*")


def memory(visitor: Visitor) -> None:
    visitor.sign_in(f"/memories/{visitor.memory_id}")


def setting_up(visitor: Visitor) -> None:
    link = visitor.server.run("owner", "setup-link").strip()
    visitor.page.goto(link)


def setting_up_wrongly(visitor: Visitor) -> None:
    setting_up(visitor)
    visitor.page.locator("#passphrase").fill("one long passphrase")
    visitor.page.locator("#passphrase_again").fill("another long passphrase")
    visitor.send()
    expect(visitor.page.get_by_role("alert")).to_be_visible()


def deleting(visitor: Visitor) -> None:
    visitor.sign_in("/account/delete")


def deleting_wrongly(visitor: Visitor) -> None:
    deleting(visitor)
    visitor.page.locator("#confirmation").fill("something else")
    visitor.send("main form button")
    expect(visitor.page.get_by_role("alert")).to_be_visible()


def forged(visitor: Visitor) -> None:
    visitor.goto("/sign-in")
    visitor.page.evaluate("document.querySelector('[name=csrf]').value = 'x'")
    visitor.page.locator("#passphrase").fill(PASSPHRASE)
    visitor.send()


def asked_badly(visitor: Visitor) -> None:
    visitor.goto(f"/authorize?client_id={visitor.client.client_id}&redirect_uri=https://elsewhere.example")


def at(path: str) -> Callable[[Visitor], None]:
    return lambda visitor: visitor.goto(path)


PAGES: dict[str, Callable[[Visitor], None]] = {
    "home": at("/"),
    "home signed in": signed_in,
    "sign-in": at("/sign-in"),
    "sign-in refused": refused,
    "sign-in for an app": signing_in_for_an_app,
    "sign-in again": sign_in_again,
    "consent": question,
    "signed out": signed_out,
    "memory": memory,
    "setup": setting_up,
    "setup refused": setting_up_wrongly,
    "delete": deleting,
    "delete refused": deleting_wrongly,
    "privacy": at("/privacy"),
    "terms": at("/terms"),
    "support": at("/support"),
    "unknown client": at("/authorize?client_id=nobody"),
    "bad request": asked_badly,
    "expired": at("/sign-in?request=gone"),
    "forged": forged,
    "setup link spent": at("/setup/none"),
    "wrong method": at("/sign-out"),
}


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory, chromium: Browser) -> Iterator[Server]:
    """A server with two spaces, a memory and a backup, run by somebody who can be reached."""
    state_dir = tmp_path_factory.mktemp("state")
    settings = {"VADEMECUM_OPERATOR": "Ann Example", "VADEMECUM_CONTACT": "ann@example.org"}
    with running(Server(state_dir, settings)) as server:
        (state_dir / "backups").mkdir()
        (state_dir / "backups" / "vademecum-20260301T120000000000Z-portable.zip").touch()
        server.run("save", MEMORY, "--topic", "house")
        with closing(sqlite3.connect(state_dir / "vademecum.db")) as database, database:
            database.execute("INSERT INTO spaces SELECT id, 'second', 'Work', created_at + 1 FROM owners")
        yield server


@pytest.fixture
def memory_id(installation: Server) -> str:
    with closing(sqlite3.connect(installation.state_dir / "vademecum.db")) as database:
        (found,) = database.execute("SELECT id FROM memories").fetchone()
    return str(found)


@pytest.fixture
def app(installation: Server) -> Iterator[LoopbackClient]:
    client = LoopbackClient(installation.url)
    yield client
    client.close()


Looking = Callable[..., Visitor]


@pytest.fixture
def looking(
    chromium: Browser, installation: Server, app: LoopbackClient, memory_id: str
) -> Iterator[Looking]:
    """Opens a fresh browser that looks in some way."""
    opened: list[BrowserContext] = []

    def look(width: int = 390, language: str = "en", **options: Any) -> Visitor:
        context = chromium.new_context(
            viewport={"width": width, "height": 844}, locale=language, java_script_enabled=True, **options
        )
        opened.append(context)
        return Visitor(context.new_page(), installation, app, memory_id)

    yield look
    for context in opened:
        context.close()


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_in_any_language_or_scheme_and_every_width_fits(
    axe: str, looking: Looking, name: str
) -> None:
    for language, tag, scheme in LOOKS:
        visitor = looking(language=language, color_scheme=scheme)
        PAGES[name](visitor)
        expect(visitor.page.locator("html")).to_have_attribute("lang", tag)
        visitor.page.evaluate(axe)
        found = visitor.page.evaluate(
            "standards => axe.run(document, {runOnly: standards, resultTypes: ['violations']})", STANDARDS
        )
        said = [
            (each["id"], node["html"], node["failureSummary"])
            for each in found["violations"]
            for node in each["nodes"]
        ]
        assert said == [], (language, scheme)
        check_every_width(visitor.page)


def check_every_width(page: Page) -> None:
    """Nothing sticks out of the smallest screen, and lines stay readable on a large one."""
    page.set_viewport_size({"width": 320, "height": 560})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    page.set_viewport_size({"width": 1600, "height": 900})
    assert page.evaluate("document.querySelector('main').clientWidth") <= 720


@pytest.mark.parametrize("name", PAGES)
def test_the_keyboard_reaches_everything_and_shows_where_it_is(looking: Looking, name: str) -> None:
    visitor = looking()
    PAGES[name](visitor)
    page = visitor.page
    # Tabbing goes on from where a page has put the focus; here it begins at the top.
    page.evaluate("document.body.tabIndex = -1; document.body.focus()")
    wanted = page.evaluate(
        """() => [...document.querySelectorAll('a[href], button, input:not([type=hidden]), summary')]
            .filter(element => element.checkVisibility()).length"""
    )
    seen = []
    for _ in range(wanted):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(FOCUSED))
    assert all(each["visible"] for each in seen), seen
    assert len({each["at"] for each in seen}) == wanted
    small = [each for each in seen if not each["inline"] and each["height"] < TARGET_PIXELS]
    assert small == []


FOCUSED = """() => {
    const element = document.activeElement
    const style = getComputedStyle(element)
    const box = (element.closest('label') ?? element).getBoundingClientRect()
    const all = [...document.querySelectorAll('*')]
    return {
        at: all.indexOf(element),
        what: element.outerHTML.slice(0, 120),
        inline: style.display === 'inline',
        height: box.height,
        visible: style.outlineStyle === 'solid' && parseFloat(style.outlineWidth) >= 2
            && box.top < innerHeight && box.bottom > 0,
    }
}"""


def test_whoever_wants_no_motion_sees_none(looking: Looking) -> None:
    duration = "getComputedStyle(document.querySelector('.primary')).transitionDuration"
    visitor = looking(reduced_motion="reduce")
    visitor.goto("/sign-in")
    assert visitor.page.evaluate(duration) == "0s"
    moving = looking(reduced_motion="no-preference")
    moving.goto("/sign-in")
    assert moving.page.evaluate(duration) != "0s", "or this test sees nothing"


@pytest.mark.parametrize("name", ["sign-in refused", "consent", "memory", "delete refused"])
def test_forced_colours_leave_every_box_its_edge(axe: str, looking: Looking, name: str) -> None:
    visitor = looking(forced_colors="active")
    PAGES[name](visitor)
    bare = visitor.page.evaluate(
        """() => [...document.querySelectorAll('.alert, .notice, .memory, .badge, button, .button')]
            .filter(element => !element.matches('.link, [hidden]'))
            .filter(element => getComputedStyle(element).borderTopStyle !== 'solid')
            .map(element => element.outerHTML)"""
    )
    assert bare == []


def test_the_language_is_switched_without_a_script_and_stays(
    chromium: Browser, installation: Server, app: LoopbackClient
) -> None:
    context = chromium.new_context(locale="en-GB", java_script_enabled=False)
    page = context.new_page()
    page.goto(app.authorization_url)
    for name, heading in (("Português", "Entrar"), ("简体中文", "登录"), ("Español", "Iniciar sesión")):
        page.get_by_role("link", name=name).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    page.locator("#passphrase").fill(PASSPHRASE)
    page.get_by_role("button", name="Iniciar sesión").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("¿Permitir que Test program use tu memoria?")
    page.get_by_role("button", name="Permitir", exact=True).click()
    page.wait_for_url(f"{app.origin}/callback?*")
    assert app.answers[0]["state"] == "opaque"
    context.close()


def test_an_account_is_taken_along_and_deleted(axe: str, chromium: Browser, tmp_path: Path) -> None:
    with running(Server(tmp_path / "state")) as server:
        server.run("save", "The spare key hangs behind the pantry door")
        context = chromium.new_context(viewport={"width": 390, "height": 844})
        page = context.new_page()
        page.goto(server.url + "/account/delete")
        page.get_by_label("Passphrase").fill(PASSPHRASE)
        page.get_by_role("button", name="Sign in").click()
        with page.expect_download() as downloaded:
            page.get_by_role("link", name="Download your memories").click()
        assert "pantry door" in Path(downloaded.value.path()).read_text()
        page.get_by_label("To confirm").fill(server.url.removeprefix("http://"))
        page.get_by_role("button", name="Delete for good").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Your account is deleted")
        page.evaluate(axe)
        found = page.evaluate("standards => axe.run(document, {runOnly: standards})", STANDARDS)
        assert found["violations"] == []
        page.reload()
        page.goto(server.url)
        expect(page.get_by_text("Signed in as")).to_have_count(0)
        expect(page.get_by_role("status")).to_contain_text("Nobody owns this server yet")
        context.close()
