"""Authorization requests: who is identified, what is refused and how, and what the redirects carry."""

from typing import Any

import pytest

from oauth import authorize
from oauth.authorize import AuthorizationRequest
from oauth.errors import AccessDenied, InvalidClient, InvalidRequest, OAuthError
from oauth.redirect_uris import is_loopback
from oauth.server import AuthorizationServer
from tests.oauth.stand import CHALLENGE, DEFAULT, ISSUER, REDIRECT_URI, RESOURCE, Host, query

Params = list[tuple[str, str]]


def ask(host: Host, params: Params | None = None, /, **changes: str | None) -> AuthorizationRequest:
    params = host.params(**changes) if params is None else params
    client, redirect_uri = authorize.identify(host.server, params)
    return authorize.validate(host.server, client, redirect_uri, params)


def refusal(host: Host, params: Params | None = None, /, **changes: str | None) -> str:
    """The code of an error that goes to the redirect URI."""
    params = host.params(**changes) if params is None else params
    client, redirect_uri = authorize.identify(host.server, params)
    with pytest.raises(OAuthError) as refused:
        authorize.validate(host.server, client, redirect_uri, params)
    return refused.value.error


def page(host: Host, params: Params | None = None, /, **changes: str | None) -> str:
    """The code of an error that goes to a page."""
    with pytest.raises(OAuthError) as refused:
        authorize.identify(host.server, host.params(**changes) if params is None else params)
    return refused.value.error


def test_a_request_that_is_right(host: Host) -> None:
    request = ask(host, prompt="consent login")
    assert request == AuthorizationRequest(
        client_id=host.client_id,
        redirect_uri=REDIRECT_URI,
        scopes=DEFAULT,
        state="s+t/a=t&e",
        code_challenge=CHALLENGE,
        resource=RESOURCE,
        prompt=frozenset({"consent", "login"}),
    )
    assert AuthorizationRequest.from_value(request.to_value()) == request


def test_state_scope_resource_and_prompt_may_be_absent(host: Host) -> None:
    request = ask(host, state=None, scope=None, resource=None)
    assert (request.state, request.scopes, request.resource) == (None, DEFAULT, RESOURCE)


@pytest.mark.threat("AZ-01")
@pytest.mark.parametrize("client_id", ["nobody", "", None, "vmc_dcr_" + "0" * 32, "../x", "{$ne}", "*"])
def test_an_unknown_client_gets_a_page(host: Host, client_id: str | None) -> None:
    assert page(host, client_id=client_id) == "invalid_client"


@pytest.mark.threat("AZ-09")
@pytest.mark.parametrize("name", ["client_id", "redirect_uri"])
def test_two_clients_or_redirect_uris_get_a_page(host: Host, name: str) -> None:
    params = host.params()
    assert page(host, [*params, (name, dict(params)[name])]) == "invalid_request"


@pytest.mark.threat("AZ-09")
@pytest.mark.parametrize(
    "name", ["response_type", "code_challenge", "code_challenge_method", "state", "scope", "x"]
)
def test_any_other_parameter_twice_is_an_invalid_request(host: Host, name: str) -> None:
    params = [*host.params(), ("x", "y")]
    assert refusal(host, [*params, (name, dict(params)[name])]) == "invalid_request"


@pytest.mark.threat("AZ-02")
@pytest.mark.parametrize(
    ("response_type", "code"),
    [
        (None, "invalid_request"),
        ("", "invalid_request"),
        ("token", "unsupported_response_type"),
        ("id_token", "unsupported_response_type"),
        ("code token", "unsupported_response_type"),
        ("code id_token", "unsupported_response_type"),
        ("none", "unsupported_response_type"),
        ("CODE", "unsupported_response_type"),
        ("code ", "unsupported_response_type"),
    ],
)
def test_only_response_type_code(host: Host, response_type: str | None, code: str) -> None:
    assert refusal(host, response_type=response_type) == code


@pytest.mark.threat("AZ-03")
@pytest.mark.parametrize(
    ("scope", "scopes"),
    [
        ("admin:everything", DEFAULT),
        ("openid offline_access", DEFAULT),
        ("memory:read admin:everything", {"memory:read"}),
        ('memory:read"\\ memory:export', {"memory:export"}),
        ("MEMORY:READ", DEFAULT),
        ("memory:read offline_access", {"memory:read"}),
        ("memory:delete", {"memory:delete"}),
    ],
)
def test_unknown_scopes_are_dropped(host: Host, scope: str, scopes: set[str]) -> None:
    assert ask(host, scope=scope).scopes == scopes


@pytest.mark.threat("AZ-04")
@pytest.mark.parametrize(
    "state",
    ["a b+c&d=e#f?g%20h", "code=evil&iss=evil", "😀\u202e", "x" * 1500, '"<script>\r\nX: y', "%00", "/"],
)
def test_state_comes_back_byte_for_byte_once(host: Host, state: str) -> None:
    request = ask(host, state=state)
    assert query(authorize.success_redirect(request, "the-code", ISSUER)) == {
        "code": "the-code",
        "state": state,
        "iss": ISSUER,
    }


def test_a_state_without_end_is_refused_and_not_sent_back(host: Host) -> None:
    params = host.params(state="x" * 4097)
    assert refusal(host, params) == "invalid_request"
    assert authorize.find_state(params) is None


def test_a_state_that_came_twice_is_not_sent_back(host: Host) -> None:
    assert authorize.find_state(host.params()) == "s+t/a=t&e"
    assert authorize.find_state([("state", "a"), ("state", "b")]) is None
    assert authorize.find_state([]) is None


@pytest.mark.threat("AZ-05")
@pytest.mark.parametrize("state", ["\r\nSet-Cookie: a=b", "<script>", "'\"><img>", " \t"])
def test_nothing_reaches_the_redirect_unescaped(host: Host, state: str) -> None:
    location = authorize.success_redirect(ask(host, state=state), "c", ISSUER)
    assert not set(location) & set("\r\n<>\"' \t")


@pytest.mark.threat("PP-01")
@pytest.mark.parametrize(
    "name", ["client_id", "redirect_uri", "state", "scope", "resource", "code_challenge"]
)
@pytest.mark.parametrize("value", ["a\x00b", "\ud800"])
def test_characters_that_are_never_valid_get_a_page(host: Host, name: str, value: str) -> None:
    assert page(host, **{name: value}) == "invalid_request"


@pytest.mark.threat("AZ-06")
def test_iss_is_in_success_and_error_exactly_once(host: Host) -> None:
    request = ask(host)
    assert query(authorize.success_redirect(request, "c", ISSUER))["iss"] == ISSUER
    denied = authorize.error_redirect(REDIRECT_URI, AccessDenied("the owner said no"), "s", ISSUER)
    assert query(denied) == {
        "error": "access_denied",
        "error_description": "the owner said no",
        "state": "s",
        "iss": ISSUER,
    }
    assert "state" not in query(authorize.error_redirect(REDIRECT_URI, AccessDenied("no"), None, ISSUER))


@pytest.mark.threat("DC-03")
@pytest.mark.parametrize(
    ("redirect_uri", "start"),
    [
        ("https://client.example", "https://client.example?code=c&"),
        ("https://client.example/cb?a=b%20c&d=", "https://client.example/cb?a=b%20c&d=&code=c&"),
        ("https://client.example/cb?", "https://client.example/cb?code=c&"),
        (
            "cursor://anysphere.cursor-mcp/oauth/callback",
            "cursor://anysphere.cursor-mcp/oauth/callback?code=c&",
        ),
    ],
)
def test_the_registered_uri_stays_as_it_is(host: Host, redirect_uri: str, start: str) -> None:
    host.register(redirect_uris=[redirect_uri])
    request = ask(host, redirect_uri=redirect_uri)
    assert authorize.success_redirect(request, "c", ISSUER).startswith(start)


@pytest.mark.threat("AZ-10")
@pytest.mark.parametrize("name", ["request", "request_uri"])
def test_request_objects_are_not_supported(host: Host, name: str) -> None:
    assert refusal(host, **{name: "https://evil.example/r"}) == "request_not_supported"


@pytest.mark.threat("CS-13")
def test_prompt_none_can_never_be_satisfied(host: Host) -> None:
    assert refusal(host, prompt="none") == "consent_required"


def test_a_client_that_may_only_refresh_is_unauthorized(host: Host) -> None:
    host.register(grant_types=["refresh_token"])
    assert refusal(host) == "unauthorized_client"


@pytest.mark.threat("PK-01")
@pytest.mark.parametrize("challenge", [None, ""])
def test_no_code_without_a_challenge(host: Host, challenge: str | None) -> None:
    assert refusal(host, code_challenge=challenge) == "invalid_request"
    assert refusal(host, code_challenge=challenge, code_challenge_method=None) == "invalid_request"


@pytest.mark.threat("AU-01")
@pytest.mark.threat("AU-04")
@pytest.mark.parametrize(
    "resource",
    [
        "https://other.example/mcp",
        "urn:example",
        "/mcp",
        "mcp",
        RESOURCE + "#f",
        RESOURCE + "x",
        RESOURCE + "/../mcp",
        RESOURCE + "?x",
        RESOURCE + ".evil.example",
        "https://memory.example.org@evil.example/mcp",
        "https://user@memory.example.org/mcp",
        "https://memory.example.org:8443/mcp",
        "https://memory.example.org/MCP",
        "http://memory.example.org/mcp",
        RESOURCE + "//",
    ],
)
def test_a_foreign_resource_is_an_invalid_target(host: Host, resource: str) -> None:
    assert refusal(host, resource=resource) == "invalid_target"


@pytest.mark.threat("AU-05")
def test_two_resources_must_both_be_ours(host: Host) -> None:
    params = host.params()
    assert ask(host, [*params, ("resource", RESOURCE)]).resource == RESOURCE
    assert ask(host, [*params, ("resource", ISSUER + "/")]).resource == RESOURCE
    assert refusal(host, [*params, ("resource", "https://other.example")]) == "invalid_target"


@pytest.mark.threat("RU-01")
@pytest.mark.threat("RU-02")
@pytest.mark.threat("RU-03")
@pytest.mark.parametrize(
    "redirect_uri",
    [
        "https://client.example.evil.example/callback",
        "https://evil.example/client.example/callback",
        "https://client.example@evil.example/callback",
        "https://evil.example\\@client.example/callback",
        "https://client.example/callback#x",
        "//client.example/callback",
        "javascript:alert(1)//https://client.example/callback",
        ISSUER + "/authorize",
        REDIRECT_URI + "/",
        REDIRECT_URI + "/x",
        REDIRECT_URI + "?x=y",
        REDIRECT_URI + "?",
        "https://client.example:443/callback",
        "http://client.example/callback",
        "HTTPS://client.example/callback",
        "https://Client.example/callback",
        "https://client.example/Callback",
        "https://client.example/%63allback",
        "https://client.example/./callback",
        "https://client.example/x/../callback",
        " " + REDIRECT_URI,
        REDIRECT_URI + " ",
        REDIRECT_URI + "\t",
        REDIRECT_URI + "\n",
        REDIRECT_URI + "\u200b",
        "https://cl\u0456ent.example/callback",
        "https://client.example\uff0fcallback",
        "http://127.0.0.1/callback",
        "https://*.example/callback",
    ],
)
def test_a_redirect_uri_matches_exactly_or_not(host: Host, redirect_uri: str) -> None:
    assert page(host, redirect_uri=redirect_uri) == "invalid_request"


@pytest.mark.threat("RU-01")
def test_another_clients_redirect_uri_is_foreign(host: Host, other_host: Host) -> None:
    other_host.register(redirect_uris=["https://other.example/callback"])
    assert page(host, redirect_uri="https://other.example/callback") == "invalid_request"


@pytest.mark.threat("RU-04")
@pytest.mark.parametrize("redirect_uri", [None, ""])
def test_the_redirect_uri_may_be_left_out_only_when_there_is_one(
    host: Host, redirect_uri: str | None
) -> None:
    assert ask(host, redirect_uri=redirect_uri).redirect_uri == REDIRECT_URI
    host.register(redirect_uris=[REDIRECT_URI, REDIRECT_URI + "/2"])
    assert page(host, redirect_uri=redirect_uri) == "invalid_request"


@pytest.mark.threat("RU-05")
@pytest.mark.parametrize("name", ["127.0.0.1", "[::1]", "localhost"])
def test_loopback_matches_on_any_port(host: Host, name: str) -> None:
    host.register(redirect_uris=[f"http://{name}:53682/cb"])
    for port in ("", ":1", ":61000", ":65535"):
        assert ask(host, redirect_uri=f"http://{name}{port}/cb").redirect_uri == f"http://{name}{port}/cb"


def test_loopback_without_a_path_is_the_root(host: Host) -> None:
    host.register(redirect_uris=["http://localhost"])
    assert ask(host, redirect_uri="http://localhost:7777/")
    host.register(redirect_uris=["http://localhost/"])
    assert ask(host, redirect_uri="http://localhost:7777")


@pytest.mark.threat("RU-06")
@pytest.mark.threat("RU-07")
@pytest.mark.parametrize(
    "redirect_uri",
    [
        "http://127.0.0.1:53682/other",
        "http://127.0.0.1:53682/cb/",
        "http://127.0.0.1:53682/cb?x=y",
        "https://127.0.0.1:53682/cb",
        "http://localhost:53682/cb",
        "http://[::1]:53682/cb",
        "http://user@127.0.0.1:53682/cb",
        "http://127.0.0.1:99999/cb",
        "http://127.0.0.1:0/cb",
        "http://127.0.0.1:/cb",
        "http://127.0.0.1:-1/cb",
        "http://127.0.0.1:6\u0661000/cb",
        "http://127.0.0.1.evil.example/cb",
        "http://127.0.0.1@evil.example/cb",
        "http://127.0.0.1#@evil.example/cb",
        "http://127.1/cb",
        "http://2130706433/cb",
        "http://0x7f.0.0.1/cb",
        "http://0177.0.0.1/cb",
        "http://[::ffff:127.0.0.1]/cb",
        "http://0.0.0.0/cb",
        "http://127.0.0.2/cb",
        "http://LOCALHOST/cb",
        "http://127.0.0.1:61000/cb\n",
    ],
)
def test_the_port_rule_changes_nothing_else(host: Host, redirect_uri: str) -> None:
    host.register(redirect_uris=["http://127.0.0.1:53682/cb"])
    assert page(host, redirect_uri=redirect_uri) == "invalid_request"


def test_the_errors_for_pages_are_what_the_standard_calls_them(host: Host) -> None:
    with pytest.raises(InvalidClient) as unknown:
        authorize.identify(host.server, [])
    assert unknown.value.status_code == 401
    with pytest.raises(InvalidRequest) as wrong:
        authorize.identify(host.server, host.params(redirect_uri="https://evil.example"))
    assert wrong.value.status_code == 400


def test_validate_needs_no_store(host: Host, server: AuthorizationServer, monkeypatch: Any) -> None:
    params = host.params()
    client, redirect_uri = authorize.identify(server, params)
    monkeypatch.setattr(server, "records", None)
    assert authorize.validate(server, client, redirect_uri, params).client_id == host.client_id


@pytest.mark.threat("CI-11")
def test_a_page_can_tell_that_a_code_goes_to_a_program_on_this_machine() -> None:
    assert is_loopback("http://localhost:1234/callback")
    assert not is_loopback(REDIRECT_URI)


@pytest.mark.threat("AZ-07")
@pytest.mark.parametrize("response_mode", ["query", "fragment", "form_post", "web_message"])
def test_the_code_travels_in_the_query_whatever_was_asked_for(host: Host, response_mode: str) -> None:
    location = authorize.success_redirect(ask(host, response_mode=response_mode), "c", ISSUER)
    assert query(location)["code"] == "c"
    assert "#" not in location
