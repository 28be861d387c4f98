"""Signing in with Firebase as a person meets it: a real browser, Firebase's own SDK and Auth emulator.

Only Google's script for frames is stood in for; it comes from the network, and a test has none.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Route, expect

from connector.pages.firebase import own_sdk_urls
from tests.browser.conftest import CHROMIUM, FLAGS, LoopbackClient
from tests.browser.served import Installation, Served
from tests.emulators import HOW_TO_GET_NODE, PROJECT, FirebaseEmulator, firebase_emulator
from tests.engines import require

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
GOOGLE_API = Path(__file__).with_name("google_api.js").read_text()
PASSWORD = "correct-horse"
ANA, EVE = "ana@example.org", "eve@elsewhere.example"


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory, chromium: Browser) -> Iterator[FirebaseEmulator]:
    with firebase_emulator(tmp_path_factory.mktemp("firebase")) as emulator:
        yield emulator


@pytest.fixture
def accounts(emulator: FirebaseEmulator) -> dict[str, str]:
    """Their uids by address."""
    emulator.clear()
    return {email: emulator.add(email, PASSWORD) for email in (ANA, EVE)}


@pytest.fixture
def served(tmp_path: Path, emulator: FirebaseEmulator) -> Iterator[Served]:
    require(bool(own_sdk_urls()), f"{HOW_TO_GET_NODE}: Firebase's SDK is missing")
    values = {
        "identity": "firebase",
        "firebase_project": PROJECT,
        "firebase_api_key": "web-key",
        "firebase_auth_emulator_host": emulator.host,
        "allowed_emails": (ANA,),
    }
    with Installation(tmp_path, values).serve() as served:
        yield served


@pytest.fixture
def context(chromium: Browser, served: Served, emulator: FirebaseEmulator) -> Iterator[BrowserContext]:
    """A fresh profile; what the browser has to say against a page of ours fails the test."""
    context = chromium.new_context(viewport={"width": 390, "height": 844}, locale="en")
    context.route(re.compile("^https://"), lambda route: route.abort())
    context.route("https://apis.google.com/js/api.js*", google_api)
    complaints: list[str] = []

    def listen(message: ConsoleMessage) -> None:
        is_status = "the server responded with a status" in message.text
        if message.type in ("error", "warning") and message.location["url"].startswith(served.url):
            complaints.extend([] if is_status else [message.text])

    context.on("console", listen)
    context.set_default_timeout(15_000)
    yield context
    context.close()
    assert complaints == []


def google_api(route: Route) -> None:
    route.fulfill(body=GOOGLE_API, content_type="text/javascript")


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


@pytest.fixture
def client(served: Served) -> Iterator[LoopbackClient]:
    client = LoopbackClient(served.url)
    yield client
    client.close()


def type_password(page: Page, email: str, password: str = PASSWORD) -> None:
    page.get_by_label("E-mail address").fill(email)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()


def expect_question(page: Page) -> None:
    expect(page.get_by_role("heading", level=1)).to_contain_text("Test program")


def allow(page: Page, client: LoopbackClient) -> None:
    page.get_by_role("button", name="Allow", exact=True).click()
    page.wait_for_url(f"{client.origin}/callback?*")


def choose_google_account(page: Page, email: str) -> None:
    """The emulator's page in place of Google's."""
    page.locator("#add-account-button").click()
    page.locator("#email-input").fill(email)
    page.locator("#sign-in").click()


def test_by_password(page: Page, client: LoopbackClient, accounts: dict[str, str]) -> None:
    page.goto(client.authorization_url)
    type_password(page, ANA)
    expect_question(page)
    allow(page, client)
    assert "access_token" in client.redeem()


def test_by_google_in_a_window_of_its_own(
    page: Page, client: LoopbackClient, accounts: dict[str, str]
) -> None:
    page.goto(client.authorization_url)
    with page.expect_popup() as opened:
        page.get_by_role("button", name="Continue with Google", exact=True).click()
    choose_google_account(opened.value, ANA)
    expect_question(page)
    allow(page, client)
    assert "access_token" in client.redeem()


def test_by_google_in_this_window(page: Page, client: LoopbackClient, accounts: dict[str, str]) -> None:
    page.goto(client.authorization_url)
    page.get_by_role("button", name="Continue with Google in this window").click()
    choose_google_account(page, ANA)
    expect_question(page)
    allow(page, client)
    assert "access_token" in client.redeem()


def test_from_a_popup_that_the_client_opened(
    page: Page, client: LoopbackClient, accounts: dict[str, str]
) -> None:
    client.page = "<script>window.opener && opener.postMessage(location.search, location.origin)</script>"
    page.goto(client.origin)
    page.evaluate("addEventListener('message', event => document.title = event.data)")
    with page.expect_popup() as opened:
        page.evaluate("url => { window.open(url, '_blank', 'width=500') }", client.authorization_url)
    popup = opened.value
    with popup.expect_popup() as second:
        popup.get_by_role("button", name="Continue with Google", exact=True).click()
    choose_google_account(second.value, ANA)
    popup.get_by_role("button", name="Allow", exact=True).click()
    page.wait_for_function("document.title.includes('code=')")


def test_a_wrong_account_is_named_and_another_one_goes_on(
    page: Page, client: LoopbackClient, accounts: dict[str, str]
) -> None:
    page.goto(client.authorization_url)
    type_password(page, EVE)
    expect(page.get_by_role("heading", level=1)).to_have_text("This server belongs to somebody else")
    expect(page.get_by_role("main")).to_contain_text(EVE)
    page.get_by_role("link", name="Use another account").click()
    type_password(page, ANA)
    expect_question(page)


def test_a_closed_window_and_a_wrong_password_leave_the_form_as_it_was(
    page: Page, client: LoopbackClient, accounts: dict[str, str]
) -> None:
    page.goto(client.authorization_url)
    type_password(page, ANA, "wrong-password")
    expect(page.get_by_role("alert")).to_contain_text("password are wrong")
    with page.expect_popup() as opened:
        page.get_by_role("button", name="Continue with Google", exact=True).click()
    opened.value.close()
    expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_enabled(timeout=20_000)
    type_password(page, ANA)
    expect_question(page)


def test_switching_accounts_at_the_question(
    page: Page, client: LoopbackClient, served: Served, accounts: dict[str, str], emulator: FirebaseEmulator
) -> None:
    page.goto(client.authorization_url)
    type_password(page, ANA)
    expect_question(page)
    expect(page.get_by_role("contentinfo")).to_contain_text("an…@example.org")
    page.get_by_role("link", name="Use another account").click()
    with page.expect_popup() as opened:
        page.get_by_role("button", name="Continue with Google", exact=True).click()
    choose_google_account(opened.value, EVE)
    expect(page.get_by_role("heading", level=1)).to_have_text("This server belongs to somebody else")
    page.get_by_role("link", name="Use another account").click()
    type_password(page, ANA)
    expect_question(page)
    allow(page, client)
    assert "access_token" in client.redeem()


@pytest.mark.threat("FB-05")
@pytest.mark.parametrize("is_deleted", [False, True])
def test_an_account_disabled_or_deleted_in_firebase_ends_at_the_next_refresh(
    page: Page,
    client: LoopbackClient,
    served: Served,
    accounts: dict[str, str],
    emulator: FirebaseEmulator,
    is_deleted: bool,
) -> None:
    page.goto(client.authorization_url)
    type_password(page, ANA)
    expect_question(page)
    allow(page, client)
    tokens = client.redeem()
    served.clock.advance(minutes=10)
    tokens = client.refresh(tokens)
    assert "access_token" in tokens
    if is_deleted:
        emulator.delete(accounts[ANA])
    else:
        emulator.disable(accounts[ANA])
    served.clock.advance(minutes=10)
    assert client.refresh(tokens)["error"] == "invalid_grant"
    page.goto(served.url)
    expect(page.get_by_role("contentinfo")).not_to_contain_text("Signed in as")
    if not is_deleted:
        page.goto(f"{served.url}/sign-in")
        type_password(page, ANA)
        expect(page.get_by_role("alert")).to_contain_text("disabled")


def test_deny(page: Page, client: LoopbackClient, accounts: dict[str, str]) -> None:
    page.goto(client.authorization_url)
    type_password(page, ANA)
    page.get_by_role("button", name="Deny", exact=True).click()
    page.wait_for_url(f"{client.origin}/callback?*")
    assert client.answers[0]["error"] == "access_denied"


def test_the_back_button_after_signing_in_leads_on_again(
    page: Page, client: LoopbackClient, accounts: dict[str, str]
) -> None:
    page.goto(client.authorization_url)
    type_password(page, ANA)
    expect_question(page)
    page.go_back()
    # In another way: twice in one second, the same way brings the same ID token, which counts once.
    with page.expect_popup() as opened:
        page.get_by_role("button", name="Continue with Google", exact=True).click()
    choose_google_account(opened.value, ANA)
    expect_question(page)
    allow(page, client)
    assert "access_token" in client.redeem()


def test_a_double_click_signs_in_once(
    page: Page, client: LoopbackClient, served: Served, accounts: dict[str, str]
) -> None:
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    page.goto(client.authorization_url)
    page.get_by_label("E-mail address").fill(ANA)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).dblclick(delay=20, no_wait_after=True)
    expect_question(page)
    assert sent.count(f"{served.url}/sign-in") == 1


def test_a_request_that_waited_too_long_is_said_to_be_over(
    page: Page, client: LoopbackClient, served: Served, accounts: dict[str, str]
) -> None:
    page.goto(client.authorization_url)
    served.clock.advance(minutes=10)
    type_password(page, ANA)
    expect(page.get_by_role("heading", level=1)).to_have_text("This page is no longer good")
    assert client.answers == []


def test_without_cookies_the_browser_is_told_what_is_missing(
    chromium: Browser, client: LoopbackClient, tmp_path: Path
) -> None:
    profile = tmp_path / "profile"
    (profile / "Default").mkdir(parents=True)
    blocked = {"profile": {"default_content_setting_values": {"cookies": 2}}}
    (profile / "Default" / "Preferences").write_text(json.dumps(blocked))
    launch = chromium.browser_type.launch_persistent_context
    with launch(profile, executable_path=CHROMIUM, args=FLAGS) as context:
        page = context.new_page()
        page.goto(client.authorization_url)
        heading = page.get_by_role("heading", level=1)
        expect(heading).to_have_text("Your browser keeps no cookie for this server")


def test_two_tabs_each_get_their_own_answer(
    context: BrowserContext, served: Served, accounts: dict[str, str]
) -> None:
    clients = [LoopbackClient(served.url), LoopbackClient(served.url)]
    pages = [context.new_page(), context.new_page()]
    for tab, client in zip(pages, clients, strict=True):
        tab.goto(client.authorization_url)
    for tab in pages:
        type_password(tab, ANA)
        expect_question(tab)
    for tab, client in zip(pages, clients, strict=True):
        allow(tab, client)
        assert "access_token" in client.redeem()
        client.close()


def test_nothing_of_the_sign_in_stays_in_the_browser(
    page: Page, client: LoopbackClient, served: Served, accounts: dict[str, str]
) -> None:
    page.goto(client.authorization_url)
    type_password(page, ANA)
    expect_question(page)
    kept = page.evaluate(
        """async () => {
            const open = indexedDB.open("firebaseLocalStorageDb")
            await new Promise(resolve => open.onsuccess = resolve)
            const name = "firebaseLocalStorage"
            const all = open.result.transaction(name).objectStore(name).getAll()
            await new Promise(resolve => all.onsuccess = resolve)
            return [Object.keys(localStorage), Object.keys(sessionStorage), all.result]
        }"""
    )
    assert kept == [[], [], []]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_form_and_the_refusal(
    page: Page, served: Served, accounts: dict[str, str], scheme: Literal["light", "dark"]
) -> None:
    require(AXE.exists(), "the accessibility tests need axe-core: npm ci in tests/browser")
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{served.url}/sign-in")
    type_password(page, EVE, "wrong-password")
    expect(page.get_by_role("alert")).to_contain_text("password are wrong")
    assert violations(page) == []
    type_password(page, EVE)
    expect(page.get_by_role("heading", level=1)).to_have_text("This server belongs to somebody else")
    assert violations(page) == []


def violations(page: Page) -> list[str]:
    page.evaluate(AXE.read_text())
    found = page.evaluate("standards => axe.run(document, {runOnly: standards})", STANDARDS)
    return [f"{each['id']}: {each['nodes'][0]['html']}" for each in found["violations"]]


def test_the_form_is_whole_on_the_smallest_screen(
    page: Page, served: Served, accounts: dict[str, str]
) -> None:
    page.set_viewport_size({"width": 320, "height": 560})
    page.goto(f"{served.url}/sign-in")
    expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_enabled()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.get_by_label("E-mail address").focus()
    page.keyboard.type(ANA)
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("contentinfo")).to_contain_text("an…@example.org")
