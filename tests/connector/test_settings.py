"""Settings are read once, checked together, and documented."""

import base64
import re
from datetime import timedelta
from pathlib import Path

import pytest

from connector.settings import Settings, SettingsError

ENV_FILE = Path(__file__).parents[2] / "deploy" / "vademecum.env"
KEY = base64.urlsafe_b64encode(bytes(range(32))).decode().rstrip("=")


def problems_of(**environ: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({f"VADEMECUM_{name.upper()}": value for name, value in environ.items()})
    return caught.value.problems


def test_every_problem_is_reported_at_once() -> None:
    problems = problems_of(public_url="http://memory.example.org", port="x", stor="sqlite", state_key="abc")
    assert {problem.split(":")[0] for problem in problems} == {
        "VADEMECUM_PUBLIC_URL",
        "VADEMECUM_PORT",
        "VADEMECUM_STOR",
        "VADEMECUM_STATE_KEY",
    }


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://Memory.Example.ORG/", "https://memory.example.org"),
        ("https://memory.example.org:443", "https://memory.example.org"),
        ("http://localhost:8788", "http://localhost:8788"),
        ("http://[::1]:9000", "http://[::1]:9000"),
    ],
)
def test_the_public_url_has_one_spelling(given: str, kept: str) -> None:
    settings = Settings.from_env({"VADEMECUM_PUBLIC_URL": given})
    assert settings.public_url == kept
    assert settings.resource == kept + "/mcp"


@pytest.mark.parametrize(
    "given",
    [
        "http://memory.example.org",
        "https://memory.example.org/path",
        "https://memory.example.org?x",
        "https://user@memory.example.org",
        "ftp://memory.example.org",
        "memory.example.org",
        "https://",
    ],
)
def test_a_public_url_that_is_no_safe_origin_is_refused(given: str) -> None:
    assert problems_of(public_url=given)


def test_plain_http_is_never_served_beyond_this_machine() -> None:
    assert problems_of(host="0.0.0.0") == [  # noqa: S104 - the address that must be refused
        "VADEMECUM: HOST listens beyond this machine, so PUBLIC_URL must be an https address"
    ]


def test_a_secret_comes_from_a_file_or_a_systemd_credential(tmp_path: Path) -> None:
    (tmp_path / "VADEMECUM_STATE_KEY").write_text(KEY + "\n")
    from_file = Settings.from_env({"VADEMECUM_STATE_KEY_FILE": str(tmp_path / "VADEMECUM_STATE_KEY")})
    from_credential = Settings.from_env({"CREDENTIALS_DIRECTORY": str(tmp_path)})
    for settings in (from_file, from_credential):
        assert settings.state_key is not None
        assert settings.state_key.get_secret_value() == bytes(range(32))
        assert KEY not in repr(settings)


def test_a_value_and_a_file_for_the_same_setting_are_a_problem(tmp_path: Path) -> None:
    (tmp_path / "port").write_text("1")
    assert problems_of(port="1", port_file=str(tmp_path / "port"))


def test_lifetimes_are_seconds() -> None:
    settings = Settings.from_env({"VADEMECUM_ACCESS_TOKEN_LIFETIME": "600"})
    assert settings.access_token_lifetime == timedelta(minutes=10)
    assert problems_of(access_token_lifetime="3601")


def test_the_env_file_lists_every_setting_with_its_default() -> None:
    listed = dict(re.findall(r"^#VADEMECUM_(\w+)=(.*)$", ENV_FILE.read_text(), re.MULTILINE))
    assert set(listed) == {name.upper() for name in Settings.model_fields}
    stated = {f"VADEMECUM_{name}": value for name, value in listed.items() if value}
    assert Settings.from_env(stated) == Settings.from_env({})


def test_trusted_proxies_are_addresses_networks_or_two_names_and_never_everybody() -> None:
    settings = Settings.from_env({"VADEMECUM_TRUSTED_PROXIES": "loopback, 192.0.2.1 2001:db8::/32"})
    assert [str(network) for network in settings.trusted_proxies] == [
        *("127.0.0.0/8", "::1/128", "192.0.2.1/32", "2001:db8::/32")
    ]
    for everybody in ("0.0.0.0/0", "::/0", "*", "all"):
        assert problems_of(trusted_proxies=everybody)


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({"EMBEDDER": "gemini"}, "GEMINI_API_KEY"),
        ({"LANGUAGE_MODEL": "gemini-x"}, "GEMINI_API_KEY"),
        ({"EMBEDDER": "openai", "OPENAI_BASE_URL": "http://example.org/v1"}, "https"),
        ({"EMBEDDER": "openai", "OPENAI_BASE_URL": "example.org"}, "URL"),
        ({"EMBEDDER": "openai", "EMBEDDING_DIMENSIONS": "2049"}, "2048"),
        ({"EMBEDDING_MODEL": "x"}, "gemini and openai"),
    ],
)
def test_a_model_that_cannot_be_asked_is_a_problem(environment: dict[str, str], problem: str) -> None:
    given = {f"VADEMECUM_{name}": value for name, value in environment.items()}
    with pytest.raises(SettingsError) as refused:
        Settings.from_env(given)
    assert problem in str(refused.value)


def test_keys_of_services_are_never_shown() -> None:
    settings = Settings.from_env(
        {
            "VADEMECUM_EMBEDDER": "gemini",
            "VADEMECUM_GEMINI_API_KEY": "a-secret-key",
            "VADEMECUM_OPENAI_API_KEY": "a-secret-key",
        }
    )
    assert "a-secret-key" not in repr(settings)


def test_firestore_needs_a_project() -> None:
    (problem,) = problems_of(store="firestore")
    assert "FIRESTORE_PROJECT" in problem
    assert (
        Settings.from_env(
            {"VADEMECUM_STORE": "firestore", "VADEMECUM_FIRESTORE_PROJECT": "p"}
        ).firestore_database
        == "(default)"
    )


def test_an_emulator_serves_no_public_address() -> None:
    emulator = {"FIRESTORE_EMULATOR_HOST": "127.0.0.1:8085"}
    assert Settings.from_env(emulator).store == "sqlite"
    with pytest.raises(SettingsError, match="FIRESTORE_EMULATOR_HOST"):
        Settings.from_env({**emulator, "VADEMECUM_PUBLIC_URL": "https://memory.example.org"})


@pytest.mark.threat("FB-04")
@pytest.mark.parametrize("name", ["FIREBASE_AUTH_EMULATOR_HOST", "VADEMECUM_FIREBASE_AUTH_EMULATOR_HOST"])
@pytest.mark.parametrize(
    ("public_url", "host"),
    [("https://memory.example.org", "127.0.0.1"), ("https://localhost", "0.0.0.0")],  # noqa: S104
)
def test_the_emulator_is_refused_where_others_reach_the_server(name: str, public_url: str, host: str) -> None:
    environ = {name: "127.0.0.1:9099", "VADEMECUM_PUBLIC_URL": public_url, "VADEMECUM_HOST": host}
    for identity in ("passphrase", "firebase"):
        with pytest.raises(SettingsError) as caught:
            Settings.from_env(environ | {"VADEMECUM_IDENTITY": identity})
        assert any("unsigned tokens" in problem for problem in caught.value.problems)
    assert Settings.from_env({name: "127.0.0.1:9099"}).firebase_auth_emulator_host == "127.0.0.1:9099"


@pytest.mark.threat("FB-04")
def test_an_issuer_without_tls_is_refused_beyond_this_machine() -> None:
    given = {"identity": "oidc", "oidc_client_id": "x"}
    assert problems_of(**given, oidc_issuer="http://idp.example.org")
    assert Settings.from_env(
        {
            "VADEMECUM_IDENTITY": "oidc",
            "VADEMECUM_OIDC_CLIENT_ID": "x",
            "VADEMECUM_OIDC_ISSUER": "http://127.0.0.1:9000/realms/home",
        }
    ).oidc_issuer


@pytest.mark.threat("FB-04")
def test_every_unsafe_combination_is_reported_at_once_beside_every_bad_value() -> None:
    problems = problems_of(
        port="x",
        identity="firebase",
        public_url="https://memory.example.org",
        firebase_auth_emulator_host="127.0.0.1:9099",
        allowed_emails="ana@example.org nobody",
        allowed_domains="gmail.com, localhost",
        open_sign_up="true",
    )
    assert [problem.split(":")[0] for problem in problems] == [
        "VADEMECUM_PORT",
        "FIREBASE_AUTH_EMULATOR_HOST",
        "VADEMECUM_FIREBASE_PROJECT",
        "VADEMECUM_OPEN_SIGN_UP",
        "VADEMECUM_ALLOWED_EMAILS",
        "VADEMECUM_ALLOWED_DOMAINS",
        "VADEMECUM_ALLOWED_DOMAINS",
    ]


def test_what_depends_on_a_bad_value_is_not_reported_on_top() -> None:
    assert [problem.split(":")[0] for problem in problems_of(identity="ldap", open_sign_up="true")] == [
        "VADEMECUM_IDENTITY"
    ]
    assert [problem.split(":")[0] for problem in problems_of(public_url="http://x.example", host="::")] == [
        "VADEMECUM_PUBLIC_URL"
    ]


def test_lists_of_people_need_a_provider_that_knows_them() -> None:
    problems = problems_of(allowed_emails="ana@example.org", allowed_uids="x", open_sign_up="true")
    assert len([problem for problem in problems if "no effect with passphrases" in problem]) == 3
    assert problems_of(identity="oidc") == [
        "VADEMECUM_OIDC_ISSUER: must be set when IDENTITY is oidc",
        "VADEMECUM_OIDC_CLIENT_ID: must be set when IDENTITY is oidc",
    ]
    assert problems_of(identity="firebase", firebase_project="p-1", firebase_api_key="k", firebase_methods="")
