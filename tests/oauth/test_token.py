"""The token endpoint: what succeeds, and every refusal by its code."""

import base64
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest

from oauth import access_tokens, grants
from oauth.errors import InvalidToken
from oauth.server import AuthorizationServer
from tests.oauth.stand import (
    DEFAULT,
    ISSUER,
    REDIRECT_URI,
    RESOURCE,
    SUBJECT,
    VERIFIER,
    Clock,
    Host,
    MemoryRecords,
    error,
)


def is_alive(server: AuthorizationServer, access_token: str) -> bool:
    try:
        grants.authorize_token(server, access_tokens.verify(server, access_token))
    except InvalidToken:
        return False
    return True


def test_code_for_tokens(host: Host, server: AuthorizationServer) -> None:
    response = host.redeem(host.code())
    assert response.status_code == 200
    tokens = response.json()
    assert tokens.keys() == {"access_token", "token_type", "expires_in", "refresh_token", "scope"}
    assert (tokens["token_type"], tokens["expires_in"]) == ("Bearer", 3540)
    assert tokens["scope"] == "memory:read memory:write"
    token = access_tokens.verify(server, tokens["access_token"])
    assert (token.subject, token.client_id, token.scopes) == (SUBJECT, host.client_id, DEFAULT)
    assert grants.authorize_token(server, token) == DEFAULT


REFUSALS: list[tuple[str, dict[str, str | None], int, str]] = [
    ("no grant type", {"grant_type": None}, 400, "invalid_request"),
    ("password", {"grant_type": "password"}, 400, "unsupported_grant_type"),
    ("client credentials", {"grant_type": "client_credentials"}, 400, "unsupported_grant_type"),
    ("implicit", {"grant_type": "implicit"}, 400, "unsupported_grant_type"),
    ("device", {"grant_type": "urn:ietf:params:oauth:grant-type:device_code"}, 400, "unsupported_grant_type"),
    ("nonsense", {"grant_type": "Authorization_Code"}, 400, "unsupported_grant_type"),
    ("no client", {"client_id": None}, 401, "invalid_client"),
    ("unknown client", {"client_id": "nobody"}, 401, "invalid_client"),
    ("client with a suffix", {"client_id": "vmc_dcr_" + "0" * 33}, 401, "invalid_client"),
    ("path as client", {"client_id": "../" + "x" * 1600}, 401, "invalid_client"),
    ("public client with a secret", {"client_secret": "guess"}, 401, "invalid_client"),
    ("no code", {"code": None}, 400, "invalid_request"),
    ("empty code", {"code": ""}, 400, "invalid_request"),
    ("unknown code", {"code": "nothing"}, 400, "invalid_grant"),
    ("forged code", {"code": f"vmc_code_{'0' * 32}.{'0' * 16}.{'A' * 43}"}, 400, "invalid_grant"),
    ("changed redirect_uri", {"redirect_uri": REDIRECT_URI + "/"}, 400, "invalid_grant"),
    ("no verifier", {"code_verifier": None}, 400, "invalid_grant"),
    ("wrong verifier", {"code_verifier": VERIFIER[::-1]}, 400, "invalid_grant"),
    ("foreign resource", {"resource": "https://other.example/mcp"}, 400, "invalid_target"),
    ("look-alike resource", {"resource": RESOURCE + "x"}, 400, "invalid_target"),
]


@pytest.mark.threat("TK-03")
@pytest.mark.threat("TK-04")
@pytest.mark.threat("TK-05")
@pytest.mark.threat("TK-09")
@pytest.mark.threat("AU-02")
@pytest.mark.threat("PK-04")
@pytest.mark.parametrize(
    ("changes", "status", "code"), [r[1:] for r in REFUSALS], ids=[r[0] for r in REFUSALS]
)
def test_a_refused_code_request_has_its_code_and_changes_nothing(
    host: Host, records: MemoryRecords, changes: dict[str, str | None], status: int, code: str
) -> None:
    authorization_code = host.code()
    before = records.dump()
    assert error(host.redeem(**{"code": authorization_code, **changes})) == (status, code)
    assert records.dump() == before
    assert host.redeem(authorization_code).status_code == 200


@pytest.mark.threat("TK-05")
@pytest.mark.threat("PK-07")
def test_another_client_cannot_redeem_the_code_and_does_not_burn_it(host: Host, other_host: Host) -> None:
    code = host.code()
    assert error(host.redeem(code, code_verifier="x" * 43)) == (400, "invalid_grant")
    assert error(other_host.redeem(code)) == (400, "invalid_grant")
    assert host.redeem(code).status_code == 200


def test_a_client_that_registered_only_to_refresh_is_unauthorized_for_codes(host: Host) -> None:
    code = host.code()
    assert host.register(grant_types=["refresh_token"]).status_code == 201
    assert error(host.redeem(code)) == (400, "unauthorized_client")


@pytest.mark.parametrize("resource", [None, ISSUER, ISSUER + "/", RESOURCE, RESOURCE + "/"])
def test_our_resource_may_be_spelled_in_five_ways(host: Host, resource: str | None) -> None:
    assert host.redeem(host.code(resource=resource), resource=resource).status_code == 200


def test_a_client_of_oauth_2_1_need_not_repeat_its_redirect_uri(host: Host) -> None:
    assert host.redeem(host.code(), redirect_uri=None).status_code == 200


@pytest.mark.threat("CR-05")
def test_a_code_expires_after_a_minute(host: Host, clock: Clock) -> None:
    code = host.code()
    clock.advance(seconds=59)
    late = host.code()
    assert host.redeem(code).status_code == 200
    clock.advance(seconds=60)
    assert error(host.redeem(late)) == (400, "invalid_grant")


@pytest.mark.threat("CL-01")
def test_an_expired_code_stays_so_when_the_clock_is_set_back(host: Host, clock: Clock) -> None:
    code = host.code()
    clock.advance(seconds=-60)
    late = host.code()
    assert host.redeem(code).status_code == 200
    clock.advance(days=-1)
    assert error(host.redeem(late)) == (400, "invalid_grant")


@pytest.mark.threat("CR-01")
def test_a_replay_that_is_right_in_everything_else_ends_the_grant(
    host: Host, server: AuthorizationServer
) -> None:
    code = host.code()
    tokens = host.redeem(code).json()
    assert error(host.redeem(code)) == (400, "invalid_grant")
    assert not is_alive(server, tokens["access_token"])
    assert error(host.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert error(host.redeem(code)) == (400, "invalid_grant")


@pytest.mark.threat("CR-02")
@pytest.mark.parametrize(
    "changes",
    [{"code_verifier": "x" * 43}, {"redirect_uri": "https://x.example"}, {"resource": "https://x.example"}],
)
def test_a_replay_that_is_wrong_otherwise_ends_nothing(
    host: Host, other_host: Host, server: AuthorizationServer, changes: dict[str, str]
) -> None:
    code = host.code()
    tokens = host.redeem(code).json()
    assert host.redeem(code, **changes).status_code == 400
    assert other_host.redeem(code).status_code == 400
    assert is_alive(server, tokens["access_token"])
    assert host.refresh(tokens["refresh_token"]).status_code == 200


@pytest.mark.threat("CR-03")
def test_eight_simultaneous_redemptions_have_one_winner_at_most(host: Host) -> None:
    for _ in range(3):
        code = host.code()
        with ThreadPoolExecutor(8) as pool:
            responses = list(pool.map(lambda _, code=code: host.redeem(code), range(8)))
        statuses = sorted(response.status_code for response in responses)
        assert statuses == [200] + [400] * 7


@pytest.mark.threat("TK-06")
@pytest.mark.parametrize(
    "name", ["code", "client_id", "grant_type", "code_verifier", "redirect_uri", "other"]
)
def test_a_parameter_sent_twice_is_refused(host: Host, name: str) -> None:
    form = [
        ("grant_type", "authorization_code"),
        ("code", host.code()),
        ("client_id", host.client_id),
        ("code_verifier", VERIFIER),
        ("redirect_uri", REDIRECT_URI),
        ("other", "value"),
    ]
    again = dict(form)[name]
    assert error(host.post("/token", [*form, (name, again)])) == (400, "invalid_request")
    assert error(host.post("/token", [(name, ""), *form])) == (400, "invalid_request")
    assert host.post("/token", form).status_code == 200


@pytest.mark.threat("AU-05")
def test_resource_may_come_twice_but_never_with_a_foreign_one(host: Host) -> None:
    form = [
        ("grant_type", "authorization_code"),
        ("code", host.code()),
        ("client_id", host.client_id),
        ("code_verifier", VERIFIER),
        ("resource", RESOURCE),
    ]
    foreign = ("resource", "https://other.example/mcp")
    assert error(host.post("/token", [*form, foreign])) == (400, "invalid_target")
    assert error(host.post("/token", [foreign, *form])) == (400, "invalid_target")
    assert host.post("/token", [*form, ("resource", RESOURCE)]).status_code == 200


@pytest.mark.threat("PP-04")
@pytest.mark.parametrize("name", ["code[]", "code[$ne]", "code.0", "Code", " code"])
def test_other_spellings_of_a_parameter_are_not_that_parameter(host: Host, name: str) -> None:
    assert error(host.redeem(host.code(), **{"code": None, name: host.code()})) == (400, "invalid_request")


@pytest.mark.threat("PP-03")
@pytest.mark.parametrize("alter", [lambda c: " " + c, lambda c: c + "\n", lambda c: c + "\u200b", str.upper])
def test_identifiers_are_compared_exactly(host: Host, alter: Any) -> None:
    code = host.code()
    assert error(host.redeem(alter(code))) == (400, "invalid_grant")
    assert error(host.redeem(code, client_id=alter(host.client_id))) == (401, "invalid_client")


@pytest.mark.threat("TK-11")
@pytest.mark.parametrize("name", ["grant_type", "code", "client_id", "code_verifier", "scope", "resource"])
def test_errors_echo_nothing_and_keep_to_the_allowed_characters(host: Host, name: str) -> None:
    response = host.redeem(host.code(), **{name: 'sp"\\é\n<script>'})
    description = response.json().get("error_description", "")
    assert "<script" not in response.text
    assert all(c in "\x20\x21" or "\x23" <= c <= "\x5b" or "\x5d" <= c <= "\x7e" for c in description)


@pytest.mark.threat("TK-10")
def test_answers_are_json_and_never_stored(host: Host) -> None:
    success = host.redeem(host.code())
    failure = host.redeem("nothing")
    for response in (success, failure):
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["content-type"] == "application/json"
    assert "token" not in failure.json()


@pytest.mark.threat("TK-12")
def test_codes_and_tokens_never_repeat(host: Host, server: AuthorizationServer) -> None:
    answers = [host.connect() for _ in range(4)]
    secrets = [answer[name] for answer in answers for name in ("access_token", "refresh_token")]
    assert len(set(secrets)) == 8


def basic(client_id: str, secret: str) -> str:
    return "Basic " + base64.b64encode(f"{quote(client_id)}:{quote(secret)}".encode()).decode()


@pytest.mark.threat("TK-07")
@pytest.mark.threat("RF-09")
@pytest.mark.parametrize("secret", [None, "", "wrong", "cut"])
def test_a_confidential_client_must_show_its_secret(secret_host: Host, secret: str | None) -> None:
    host, right = secret_host, secret_host.client_secret
    assert right is not None
    wrong = right[:-1] if secret == "cut" else secret
    code = host.code()
    assert error(host.redeem(code, client_secret=wrong)) == (401, "invalid_client")
    tokens = host.redeem(code).json()
    assert error(host.refresh(tokens["refresh_token"], client_secret=wrong)) == (401, "invalid_client")
    assert host.refresh(tokens["refresh_token"]).status_code == 200


@pytest.mark.threat("TK-07")
def test_basic_credentials_work_without_a_client_id_in_the_body(secret_host: Host) -> None:
    host = secret_host
    assert host.client_secret is not None
    form = [("grant_type", "authorization_code"), ("code", host.code()), ("code_verifier", VERIFIER)]
    wrong = host.post("/token", form, Authorization=basic(host.client_id, "wrong"))
    assert error(wrong) == (401, "invalid_client")
    assert wrong.headers["www-authenticate"].startswith("Basic ")
    right = host.post("/token", form, Authorization=basic(host.client_id, host.client_secret))
    assert right.status_code == 200


def test_a_public_client_may_send_its_id_by_basic_with_an_empty_password(host: Host) -> None:
    form = [("grant_type", "authorization_code"), ("code", host.code()), ("code_verifier", VERIFIER)]
    assert host.post("/token", form, Authorization=basic(host.client_id, "")).status_code == 200


@pytest.mark.threat("TK-08")
def test_one_way_to_authenticate_at_a_time(secret_host: Host, host: Host) -> None:
    secret = secret_host.client_secret or ""
    header = basic(secret_host.client_id, secret)
    form = [("grant_type", "authorization_code"), ("code", "c"), ("client_secret", secret)]
    assert error(host.post("/token", form, Authorization=header)) == (400, "invalid_request")
    form = [("grant_type", "authorization_code"), ("code", "c"), ("client_id", host.client_id)]
    assert error(host.post("/token", form, Authorization=header)) == (400, "invalid_request")


@pytest.mark.threat("TK-08")
@pytest.mark.parametrize(
    "header",
    ["Basic", "Basic ", "Basic !!!", "Basic YQ", "Basic YQ==", "Basic //8=", "Basic AAA6", "basic a b"],
)
def test_a_malformed_basic_header_is_invalid_client(host: Host, header: str) -> None:
    form = [("grant_type", "authorization_code"), ("code", host.code()), ("code_verifier", VERIFIER)]
    assert error(host.post("/token", form, Authorization=header)) == (401, "invalid_client")


@pytest.mark.threat("TM-01")
def test_an_unknown_client_and_a_wrong_secret_get_the_same_answer(secret_host: Host) -> None:
    wrong = secret_host.redeem("code", client_secret="wrong")
    unknown = secret_host.redeem("code", client_secret="wrong", client_id="vmc_dcr_" + "0" * 32)
    assert wrong.json() == unknown.json()
    assert wrong.status_code == unknown.status_code == 401
