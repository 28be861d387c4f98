"""Whatever a stranger sends, the answer is an OAuth error and never a bug."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oauth import access_tokens, authorize, client_metadata, derived_tokens
from oauth.errors import InvalidClientMetadata, InvalidRequest, InvalidToken, OAuthError
from oauth.parameters import parse_form, parse_json
from oauth.redirect_uris import APP_REDIRECT_URIS
from oauth.server import AuthorizationServer
from tests.oauth.stand import CHALLENGE, ISSUER, REDIRECT_URI, SCOPES, Host, query

quickly = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.threat("PP-01")
@quickly
@given(st.binary(max_size=200))
def test_any_bytes_are_a_form_or_an_invalid_request(raw: bytes) -> None:
    try:
        pairs = parse_form(raw)
    except InvalidRequest:
        return
    assert all("\x00" not in name + value for name, value in pairs)


@pytest.mark.threat("DC-04")
@quickly
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode(errors="replace")))
def test_any_bytes_are_an_object_or_invalid_metadata(raw: bytes) -> None:
    try:
        assert isinstance(parse_json(raw), dict)
    except InvalidClientMetadata:
        return


@pytest.mark.threat("DC-04")
@quickly
@given(
    st.dictionaries(st.sampled_from(client_metadata.ClientMetadata.REGISTERED_CLAIMS), anything, max_size=6)
)
def test_any_members_are_metadata_or_an_error(members: dict[str, Any]) -> None:
    for given_members in (members, members | {"redirect_uris": [REDIRECT_URI]}):
        try:
            kept = client_metadata.parse(given_members, SCOPES.supported, APP_REDIRECT_URIS)
        except OAuthError as error:
            assert error.error in ("invalid_redirect_uri", "invalid_client_metadata")
        else:
            assert kept["token_endpoint_auth_method"] in client_metadata.AUTH_METHODS


@pytest.mark.threat("JW-05")
@quickly
@given(
    token=st.text(max_size=200)
    | st.from_regex(r"[A-Za-z0-9_=-]{0,40}(\.[A-Za-z0-9_=-]{0,40}){2}", fullmatch=True)
)
def test_any_text_is_no_token(server: AuthorizationServer, token: str) -> None:
    with pytest.raises(InvalidToken):
        access_tokens.verify(server, token)
    assert derived_tokens.read_code(server, token) is None
    assert derived_tokens.read_refresh_token(server, token) is None


@pytest.mark.threat("AZ-04")
@quickly
@given(state=st.text(min_size=1, max_size=100).filter(lambda text: "\x00" not in text))
def test_any_state_that_is_accepted_comes_back_as_it_was(host: Host, state: str) -> None:
    params = host.params(state=state)
    client, redirect_uri = authorize.identify(host.server, params)
    request = authorize.validate(host.server, client, redirect_uri, params)
    assert query(authorize.success_redirect(request, "c", ISSUER))["state"] == state


@pytest.mark.threat("AZ-05")
@quickly
@given(
    params=st.lists(
        st.tuples(
            st.sampled_from(["response_type", "state", "scope", "resource", "prompt", "code_challenge", "x"]),
            st.text(max_size=30) | st.sampled_from(["code", CHALLENGE, "S256", "none"]),
        ),
        max_size=6,
    )
)
def test_any_request_is_valid_or_an_error_that_can_be_redirected(
    host: Host, params: list[tuple[str, str]]
) -> None:
    params = [("client_id", host.client_id), *params]
    try:
        client, redirect_uri = authorize.identify(host.server, params)
    except InvalidRequest:
        return  # characters that are never valid
    with pytest.raises(OAuthError) as refused:
        authorize.validate(host.server, client, redirect_uri, params)
    state = authorize.find_state(params)
    location = authorize.error_redirect(redirect_uri, refused.value, state, ISSUER)
    assert query(location)["iss"] == ISSUER
    assert location.isascii()
