"""Sign-in and consent as a person meets them: mouse, keyboard, popup, double click, small screen."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import LoopbackClient
from tests.processes import PASSPHRASE, Server


def sign_in(page: Page, client: LoopbackClient) -> None:
    """As far as the question."""
    page.goto(client.authorization_url)
    page.get_by_label("Passphrase").fill(PASSPHRASE)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Test program")


def test_a_person_signs_in_and_allows(page: Page, client: LoopbackClient) -> None:
    sign_in(page, client)
    page.get_by_role("checkbox", name="Save and change").uncheck()
    page.get_by_role("button", name="Allow", exact=True).click()
    page.wait_for_url(f"{client.origin}/callback?*")
    assert (client.answers[0]["state"], client.answers[0]["iss"]) == ("opaque", client.server_url)
    assert client.redeem()["scope"] == "memory:read"


def test_a_person_denies(page: Page, client: LoopbackClient) -> None:
    sign_in(page, client)
    page.get_by_role("button", name="Deny", exact=True).click()
    page.wait_for_url(f"{client.origin}/callback?*")
    assert client.answers[0]["error"] == "access_denied"


def test_the_keyboard_alone_is_enough(page: Page, client: LoopbackClient) -> None:
    page.goto(client.authorization_url)
    expect(page.get_by_label("Passphrase")).to_be_focused()
    page.keyboard.type(PASSPHRASE)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Test program")
    reach(page, "Save and change")
    page.keyboard.press("Space")
    reach(page, "Allow more than it asks for")
    page.keyboard.press("Enter")
    reach(page, "Copy everything")
    page.keyboard.press("Space")
    reach(page, "Allow")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{client.origin}/callback?*")
    assert client.redeem()["scope"] == "memory:read memory:export"


def reach(page: Page, name: str) -> None:
    """Tabs on until the focus, which must be visible, is on what begins with that name."""
    for _ in range(20):
        page.keyboard.press("Tab")
        focused = page.evaluate(
            """() => {
                const element = document.activeElement
                const text = (element.closest('label') ?? element).innerText.trim()
                return [text, getComputedStyle(element).outlineStyle]
            }"""
        )
        if focused[0] == name or focused[0].startswith(f"{name}\n"):
            assert focused[1] == "solid"
            return
    raise AssertionError(f"{name} cannot be reached")


def test_enter_in_a_tick_box_decides_nothing(page: Page, client: LoopbackClient) -> None:
    sign_in(page, client)
    page.get_by_role("checkbox", name="Read").press("Enter")
    expect(page.get_by_role("button", name="Allow", exact=True)).to_be_visible()
    page.get_by_role("button", name="Deny", exact=True).click()
    page.wait_for_url(f"{client.origin}/callback?*")
    assert [answer.get("error") for answer in client.answers] == ["access_denied"]


@pytest.mark.threat("CS-07")
def test_a_double_click_on_allow_still_brings_the_code_and_only_one(
    page: Page, client: LoopbackClient
) -> None:
    client.delay = 0.3
    sign_in(page, client)
    page.get_by_role("button", name="Allow", exact=True).dblclick(delay=20, no_wait_after=True)
    expect(page).to_have_url(re.compile(re.escape(f"{client.origin}/callback?")))
    assert len({answer["code"] for answer in client.answers}) == 1
    assert "access_token" in client.redeem()


def test_a_client_that_opened_a_popup_hears_from_it(page: Page, client: LoopbackClient) -> None:
    client.page = "<script>window.opener && opener.postMessage(location.search, location.origin)</script>"
    page.goto(client.origin)
    page.evaluate("addEventListener('message', event => document.title = event.data)")
    with page.expect_popup() as opened:
        page.evaluate(
            "url => { window.open(url, '_blank', 'width=500,height=700') }", client.authorization_url
        )
    popup = opened.value
    popup.get_by_label("Passphrase").fill(PASSPHRASE)
    popup.get_by_role("button", name="Sign in").click()
    popup.get_by_role("button", name="Allow", exact=True).click()
    page.wait_for_function("document.title.includes('code=')")


def test_pages_are_whole_on_the_smallest_screen_and_load_nothing_from_elsewhere(
    page: Page, client: LoopbackClient, server: Server
) -> None:
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.set_viewport_size({"width": 320, "height": 560})
    page.goto(server.url)
    whole(page)
    sign_in(page, client)
    whole(page)
    page.locator("summary").click()
    whole(page)
    page.goto(f"{server.url}/authorize?client_id=nobody")
    whole(page)
    page.goto(f"{server.url}/memories/none")
    whole(page)
    assert all(url.startswith(server.url + "/") for url in requested)


def whole(page: Page) -> None:
    """Nothing sticks out; one heading; every field has a name; the language is told."""
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    expect(page.locator("html")).to_have_attribute("lang", "en")
    assert page.evaluate(
        "[...document.querySelectorAll('input:not([type=hidden])')].every(field => field.labels.length)"
    )
