"""Which language a page speaks, and how a person changes it without a script."""

import re

import httpx2
import pytest

from connector.pages.languages import negotiate
from tests.connector.pages.stand import Form, Person, Stand
from tests.oauth.stand import Host


def tag(page: httpx2.Response) -> str:
    found = re.search(r'<html lang="([^"]+)">', page.text)
    assert found and page.headers["content-language"] == found[1]
    return found[1]


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("", "en"),
        ("de", "en"),
        ("pt-BR,pt;q=0.9,en;q=0.8", "pt"),
        ("es-419", "es"),
        ("zh-TW", "zh"),
        ("ZH-hans-cn;q=0.5", "zh"),
        ("de-CH, fr;q=0.9, es;q=0.2, en;q=0.1", "es"),
        ("en;q=0.1, pt;q=0.3, es;q=0.2", "pt"),
        ("es;q=0, pt;q=0", "en"),
        ("en, pt", "en"),
        ("*", "en"),
        ("es;q=x, pt;q=nan", "en"),
        (";;;=,,q", "en"),
        ("x," * 5000 + "es", "en"),
    ],
)
def test_the_browser_is_asked_what_its_person_reads(header: str, code: str) -> None:
    assert negotiate(header).code == code


def test_a_page_says_which_language_it_is_in(person: Person) -> None:
    person.http.headers["Accept-Language"] = "zh-CN"
    home = person.get("/")
    assert tag(home) == "zh-Hans"
    assert "Accept-Language" in home.headers["vary"]
    assert "一份记忆" in home.text


def test_the_switch_is_a_link_that_works_at_once_and_is_remembered(person: Person) -> None:
    person.http.headers["Accept-Language"] = "es"
    links = re.findall(r'<a href="(\?lang=\w+)" lang="([\w-]+)"', person.get("/").text)
    assert links == [("?lang=en", "en"), ("?lang=pt", "pt"), ("?lang=es", "es"), ("?lang=zh", "zh-Hans")]
    assert tag(person.get("/?lang=pt")) == "pt"
    assert tag(person.get("/sign-in")) == "pt"
    assert tag(person.get("/?lang=xx")) == "pt"


@pytest.mark.threat("CK-01")
@pytest.mark.threat("CK-02")
def test_the_cookie_of_the_language_holds_one_of_four_words(person: Person) -> None:
    person.get("/")
    (cookie,) = person.get("/?lang=es").headers.get_list("set-cookie")
    assert cookie.startswith("__Host-vademecum-language=es; ")
    assert {"HttpOnly", "SameSite=Lax", "Path=/", "Secure"} <= set(cookie.split("; "))
    assert "domain" not in cookie.lower()
    for value in ("xx", "", '"><script>', "../es", "es; pt"):
        person.plant("__Host-vademecum-language", value)
        assert tag(person.get("/")) in ("en", "es")


def test_switching_keeps_what_the_page_is_about(stand: Stand, person: Person, host: Host) -> None:
    question = person.consent_page(stand.url(host))
    request = dict(Form(question.text).fields)["request"]
    link = f"?request={request}&amp;lang=zh"
    assert f'href="{link}"' in question.text
    switched = person.get("/consent" + link.replace("&amp;", "&"))
    assert tag(switched) == "zh-Hans"
    assert Form(switched.text).buttons == ["deny", "allow"]
    assert person.submit(switched, decision="allow").status_code == 303


def test_switching_after_a_refused_form_leads_back_to_the_form_and_repeats_nothing(
    stand: Stand, person: Person, host: Host
) -> None:
    page = person.submit(person.open(stand.url(host)), passphrase="wrong")
    assert page.status_code == 403 and "wrong" not in page.text
    link = re.search(r'href="(\?request=[^"]+lang=es)"', page.text)
    assert link
    again = person.get("/sign-in" + link[1].replace("&amp;", "&"))
    assert again.status_code == 200 and tag(again) == "es"


def test_errors_speak_the_language_too(person: Person) -> None:
    person.http.headers["Accept-Language"] = "es"
    for path in ("/authorize?client_id=nobody", "/consent?request=%ff", "/setup/x"):
        page = person.get(path)
        assert page.status_code in (400, 410) and tag(page) == "es"
    assert tag(person.http.post("/sign-in", content=b"x")) == "es"
    assert tag(person.get("/sign-out")) == "es"


@pytest.mark.threat("OR-01")
def test_the_links_of_the_switch_never_leave_the_page(person: Person) -> None:
    odd = person.get('/sign-in?next=//evil.example&"><script>=1&lang=//evil.example&x=' + "y" * 9000)
    assert odd.status_code == 200
    links = re.findall(r'<a href="([^"]*)" lang=', odd.text)
    assert len(links) == 4 and all(link.startswith("?") for link in links)
    assert "<script" not in odd.text and "set-cookie" in odd.headers
    assert "language" not in odd.headers["set-cookie"]
