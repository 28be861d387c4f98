"""Signing in with OpenID Connect: a real browser at a real provider on loopback."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import LoopbackClient
from tests.browser.served import Installation, Served
from tests.emulators import OpenIdProvider, openid_provider
from tests.processes import free_port

SECRET = "a secret: with signs & spaces"


@pytest.fixture
def port() -> int:
    """Known before the server starts: the issuer must know where it leads back to."""
    return free_port()


@pytest.fixture
def issuer(port: int, tmp_path: Path) -> Iterator[OpenIdProvider]:
    redirect_uri = f"http://127.0.0.1:{port}/login/oidc/callback"
    with openid_provider(redirect_uri, tmp_path / "issuer.log") as issuer:
        yield issuer


@pytest.fixture
def served(tmp_path: Path, issuer: OpenIdProvider, port: int) -> Iterator[Served]:
    values = {
        "identity": "oidc",
        "oidc_issuer": issuer.issuer,
        "oidc_client_id": "vademecum",
        "oidc_client_secret": SECRET,
        "oidc_name": "Test issuer",
        "oidc_prompt": ("login", "consent"),
        "allowed_emails": ("ana@example.org", "new@example.org"),
    }
    with Installation(tmp_path, values, port).serve() as served:
        yield served


@pytest.fixture
def page(chromium: Browser, served: Served) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 390, "height": 844}, locale="en")
    context.set_default_timeout(15_000)
    yield context.new_page()
    context.close()


@pytest.fixture
def client(served: Served) -> Iterator[LoopbackClient]:
    client = LoopbackClient(served.url)
    yield client
    client.close()


def sign_in(page: Page, name: str) -> None:
    """At the issuer's own pages."""
    page.get_by_role("button", name="Continue with Test issuer").click()
    page.get_by_placeholder("Enter any login").fill(name)
    page.get_by_placeholder("and password").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()


def connect(page: Page, client: LoopbackClient) -> None:
    page.goto(client.authorization_url)
    sign_in(page, "ana")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Test program")
    page.get_by_role("button", name="Allow", exact=True).click()
    page.wait_for_url(f"{client.origin}/callback?*")


def test_signing_in_connecting_and_staying_connected(
    page: Page, client: LoopbackClient, served: Served
) -> None:
    connect(page, client)
    tokens = client.redeem()
    for _ in range(3):
        served.clock.advance(minutes=10)
        tokens = client.refresh(tokens)
        assert "access_token" in tokens, "the issuer rotates its refresh token, and the next renewal has it"


@pytest.mark.threat("FB-05")
def test_an_outage_loses_nothing_and_a_deleted_account_ends_the_login(
    page: Page, client: LoopbackClient, served: Served, issuer: OpenIdProvider
) -> None:
    connect(page, client)
    tokens = client.redeem()
    served.clock.advance(minutes=10)
    with issuer.outage():
        assert client.refresh(tokens)["error"] == "temporarily_unavailable"
        page.goto(f"{served.url}/sign-in")
        page.get_by_role("button", name="Continue with Test issuer").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Signing in does not work right now")
    served.clock.advance(minutes=1)
    tokens = client.refresh(tokens)
    assert "access_token" in tokens
    issuer.end("ana")
    served.clock.advance(minutes=10)
    assert client.refresh(tokens)["error"] == "invalid_grant"
    page.goto(served.url)
    expect(page.get_by_role("contentinfo")).not_to_contain_text("Signed in as")


def test_a_wrong_account_is_named_and_another_one_goes_on(page: Page, client: LoopbackClient) -> None:
    page.goto(client.authorization_url)
    sign_in(page, "eve")
    expect(page.get_by_role("heading", level=1)).to_have_text("This server belongs to somebody else")
    expect(page.get_by_role("main")).to_contain_text("eve@example.org")
    page.get_by_role("link", name="Use another account").click()
    sign_in(page, "new")
    expect(page.get_by_role("main")).to_contain_text("has not been confirmed")
    page.get_by_role("link", name="Use another account").click()
    sign_in(page, "ana")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Test program")


def test_who_cancels_at_the_issuer_is_back_at_the_form(page: Page, client: LoopbackClient) -> None:
    page.goto(client.authorization_url)
    page.get_by_role("button", name="Continue with Test issuer").click()
    page.get_by_role("link", name="Cancel").click()
    expect(page.get_by_role("alert")).to_contain_text("was not accepted")
    sign_in(page, "ana")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Test program")


@pytest.mark.threat("CS-12")
def test_an_answer_that_another_browser_asked_for_signs_nobody_in(
    page: Page, chromium: Browser, served: Served
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{served.url}/sign-in")
    page.get_by_role("button", name="Continue with Test issuer").click()
    expect(page.get_by_placeholder("Enter any login")).to_be_visible()
    (state,) = {value for url in asked for value in parse_qs(urlsplit(url).query).get("state", [])}
    victim = chromium.new_page()
    victim.goto(f"{served.url}/sign-in")
    victim.goto(f"{served.url}/login/oidc/callback?state={state}&code=theirs")
    expect(victim.get_by_role("heading", level=1)).to_have_text("This page is no longer good")
    expect(victim.get_by_role("contentinfo")).not_to_contain_text("Signed in as")
    victim.close()
