"""What the server says about itself."""

import pytest
from starlette.testclient import TestClient

from oauth.metadata import PATHS
from tests.oauth.stand import ISSUER, RESOURCE

EXPECTED = {
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-authorization-server/mcp",
    "/.well-known/openid-configuration",
    "/.well-known/openid-configuration/mcp",
}


@pytest.mark.threat("MD-01")
@pytest.mark.threat("HH-01")
def test_one_document_in_four_places_with_one_origin(http: TestClient) -> None:
    assert set(PATHS) == EXPECTED
    documents = [http.get(path, headers={"X-Forwarded-Host": "evil.example"}).json() for path in PATHS]
    assert all(document == documents[0] for document in documents)
    document = documents[0]
    assert document["issuer"] == ISSUER
    assert document["protected_resources"] == [RESOURCE]
    endpoints = {name: value for name, value in document.items() if name.endswith(("_endpoint", "_uri"))}
    assert endpoints == {
        "authorization_endpoint": ISSUER + "/authorize",
        "token_endpoint": ISSUER + "/token",
        "registration_endpoint": ISSUER + "/register",
        "revocation_endpoint": ISSUER + "/revoke",
        "jwks_uri": ISSUER + "/jwks.json",
    }


@pytest.mark.threat("MD-02")
def test_only_safe_features_are_advertised(http: TestClient) -> None:
    document = http.get(PATHS[0]).json()
    assert document["code_challenge_methods_supported"] == ["S256"]
    assert document["response_types_supported"] == ["code"]
    assert document["response_modes_supported"] == ["query"]
    assert document["grant_types_supported"] == ["authorization_code", "refresh_token"]
    assert document["scopes_supported"] == ["memory:read", "memory:write", "offline_access"]
    assert document["token_endpoint_auth_signing_alg_values_supported"] == ["RS256", "ES256"]


def test_what_hosts_look_for_before_they_choose_a_metadata_document(http: TestClient) -> None:
    document = http.get(PATHS[0]).json()
    assert document["client_id_metadata_document_supported"] is True
    assert document["authorization_response_iss_parameter_supported"] is True
    methods = ["none", "private_key_jwt", "client_secret_basic", "client_secret_post"]
    assert document["token_endpoint_auth_methods_supported"] == methods
