"""How long a session lives, what ends it, and what it takes to do what cannot be undone."""

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from connector.pages.page import Page, Visit
from connector.pages.reauthentication import find_fresh_owner, over_sign_in
from connector.pages.routes import routes
from tests.connector.pages.stand import PASSPHRASE, Form, Person, Stand


def test_a_session_ends_after_14_days_without_use(stand: Stand, person: Person) -> None:
    person.sign_in()
    for _ in range(3):
        stand.clock.advance(days=13)
        assert person.is_signed_in
    stand.clock.advance(days=14)
    assert not person.is_signed_in


def test_a_session_ends_after_90_days_whatever_happens(stand: Stand, person: Person) -> None:
    person.sign_in()
    for _ in range(8):
        stand.clock.advance(days=10)
        assert person.is_signed_in
    stand.clock.advance(days=10)
    assert not person.is_signed_in


@pytest.mark.threat("CK-03")
def test_signing_out_ends_this_session_and_no_other(stand: Stand, person: Person) -> None:
    other = stand.person()
    person.sign_in()
    other.sign_in()
    copied = dict(person.http.cookies)
    assert sign_out(person).headers["location"] == "/signed-out"
    thief = stand.person()
    for name, value in copied.items():
        thief.plant(name, value)
    assert [each.is_signed_in for each in (person, thief, other)] == [False, False, True]


def test_signing_out_everywhere_ends_every_session_of_this_owner_only(stand: Stand, person: Person) -> None:
    stand.add_owner("Second", "another long passphrase")
    other, second = stand.person(), stand.person()
    person.sign_in(account="Owner")
    other.sign_in(account="Owner")
    second.sign_in("another long passphrase", account="Second")
    answer = person.follow(sign_out(person, everywhere="yes"))
    assert "signed out everywhere" in answer.text
    assert [each.is_signed_in for each in (person, other, second)] == [False, False, True]


def sign_out(person: Person, **fields: str) -> httpx2.Response:
    footer = person.get("/").text.partition("<footer>")[2]
    csrf = footer.split('name="csrf" value="')[1].split('"')[0]
    answer = person.post("/sign-out", [("csrf", csrf), *fields.items()])
    assert answer.status_code == 303
    return answer


def test_a_grave_page_demands_a_sign_in_of_the_last_five_minutes_and_leads_back(stand: Stand) -> None:
    def grave(visit: Visit) -> Response:
        is_fresh = find_fresh_owner(visit) is not None
        return PlainTextResponse("done") if is_fresh else over_sign_in(visit, "/grave")

    app = Starlette(
        routes=[Route("/grave", Page(stand.context, grave, grave, "grave")), *routes(stand.context)]
    )
    person = Person(TestClient(app, base_url=stand.issuer, follow_redirects=False), stand.issuer)

    signed_out = person.open("/grave")
    back = person.follow(person.submit(signed_out, passphrase=PASSPHRASE))
    assert back.text == "done"
    stand.clock.advance(minutes=5)
    assert person.get("/grave").text == "done"
    stand.clock.advance(seconds=1)
    again = person.open("/grave")
    assert 'name="passphrase"' in again.text
    assert person.follow(person.submit(again, passphrase=PASSPHRASE)).text == "done"
    stand.clock.advance(minutes=-1)
    assert person.get("/grave").status_code == 303, "a clock that was set back makes nothing recent"


def test_a_browser_without_cookies_is_told_so(stand: Stand) -> None:
    person = stand.person()
    page = person.open(stand.url(stand.host()))
    person.http.cookies.clear()
    assert "keeps no cookie" in person.submit(page, passphrase=PASSPHRASE).text
    person.http.cookies.clear()
    again = person.get(str(page.url))
    assert again.status_code == 400 and "keeps no cookie" in again.text


def test_a_second_tab_goes_on_after_the_first_one_signed_in(stand: Stand, person: Person) -> None:
    tabs = [person.open(stand.url(stand.host())) for _ in range(2)]
    person.submit(tabs[0], passphrase=PASSPHRASE)
    answer = person.submit(tabs[1], passphrase="not even read")
    assert answer.status_code == 303
    assert 'action="/consent"' in person.follow(answer).text


@pytest.mark.threat("CS-04", "CS-12")
def test_an_old_form_leads_nobody_on_who_did_not_begin_it_here(stand: Stand, person: Person) -> None:
    theirs = stand.person().open(stand.url(stand.host()))
    mine = person.open(stand.url(stand.host()))
    person.submit(mine, passphrase=PASSPHRASE)
    assert person.submit(theirs, passphrase=PASSPHRASE).status_code == 400
    assert person.submit(person.get("/sign-in"), csrf="x", passphrase=PASSPHRASE).status_code == 403
    fields = Form(mine.text).replace(passphrase=PASSPHRASE)
    assert person.post("/sign-in", fields, Origin="https://evil.example").status_code == 403
