"""What holds for every redirect URI, verifier and scope, not only for those somebody thought of."""

import base64
import hashlib
import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oauth import access_tokens, grants, pkce
from oauth.errors import InvalidGrant, InvalidRedirectURI
from oauth.redirect_uris import check_registrable, is_loopback, is_registered
from tests.oauth.stand import SCOPES, Host

UNRESERVED = string.ascii_letters + string.digits + "-._~"
LOOPBACKS = st.sampled_from(["127.0.0.1", "localhost", "[::1]"])
PORTS = st.integers(min_value=1, max_value=65535)
PATHS = st.text(UNRESERVED + "/", max_size=30).map(lambda path: "/" + path)
scopes = st.sets(st.sampled_from(SCOPES.supported))


@given(st.text(max_size=80), st.text(max_size=80))
def test_a_uri_that_is_no_loopback_is_registered_only_as_it_stands(uri: str, known: str) -> None:
    if not (is_loopback(uri) and is_loopback(known)):
        assert is_registered(uri, [known]) == (uri == known)


@given(LOOPBACKS, LOOPBACKS, PORTS, PORTS, PATHS, PATHS)
def test_on_loopback_the_port_is_free_and_nothing_else(
    host: str, other: str, port: int, another: int, path: str, elsewhere: str
) -> None:
    asked = f"http://{host}:{another}{path}"
    assert is_registered(asked, [f"http://{host}:{port}{path}"])
    assert is_registered(asked, [f"http://{other}:{port}{path}"]) == (host == other)
    assert is_registered(asked, [f"http://{host}:{port}{elsewhere}"]) == (path == elsewhere)


@given(st.text(max_size=100))
def test_whatever_may_be_registered_is_https_or_loopback_or_listed(uri: str) -> None:
    try:
        check_registrable(uri, ())
    except InvalidRedirectURI:
        return
    assert uri.startswith("https://") or is_loopback(uri)
    assert uri.isascii() and "#" not in uri and "@" not in uri.split("/")[2]


def challenge(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


@given(st.text(UNRESERVED, min_size=43, max_size=128), st.text(UNRESERVED, min_size=43, max_size=128))
def test_only_the_verifier_that_was_hashed_is_accepted(verifier: str, other: str) -> None:
    pkce.verify(verifier, challenge(verifier))
    if other != verifier:
        with pytest.raises(InvalidGrant):
            pkce.verify(other, challenge(verifier))


@given(st.text(max_size=140))
def test_a_malformed_verifier_is_refused_even_when_its_hash_matches(verifier: str) -> None:
    if not (43 <= len(verifier) <= 128 and set(verifier) <= set(UNRESERVED)):
        with pytest.raises(InvalidGrant):
            pkce.verify(verifier, challenge(verifier))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(granted=scopes.filter(bool), narrowed=scopes, asked=scopes)
def test_a_refresh_never_names_more_than_is_granted_now(
    host: Host, granted: set[str], narrowed: set[str], asked: set[str]
) -> None:
    tokens = host.connect(frozenset(granted))
    grant_id = access_tokens.verify(host.server, tokens["access_token"]).grant_id
    grants.narrow(host.server, grant_id, frozenset(narrowed))
    answer = host.refresh(tokens["refresh_token"], scope=" ".join(sorted(asked)) or None)
    if answer.status_code == 200:
        assert set(answer.json()["scope"].split()) <= granted & narrowed & (asked or granted)
    else:
        assert answer.json()["error"] in ("invalid_scope", "invalid_grant")
        assert not asked <= granted or not granted & narrowed & (asked or granted)
