"""What the settings say of who signs in and who may enter, in the providers' own terms."""

from connector.identity.admission import AllowList
from connector.identity.firebase import FirebaseProject
from connector.identity.oidc import CALLBACK_PATH, OidcClient
from connector.pages.firebase import cdn_sdk_urls, own_sdk_urls
from connector.settings import Settings, SettingsError


def allow_list(settings: Settings) -> AllowList:
    """Who may enter; empty where nobody was listed."""
    return AllowList.of(settings.allowed_emails, settings.allowed_domains, settings.allowed_uids)


def firebase_project(settings: Settings) -> FirebaseProject:
    """The Firebase project."""
    return FirebaseProject(
        id=settings.firebase_project,
        api_key=settings.firebase_api_key,
        auth_domain=settings.firebase_auth_domain,
        methods=settings.firebase_methods,
        emulator_host=settings.firebase_auth_emulator_host,
    )


def firebase_sdk_urls(settings: Settings) -> tuple[str, ...]:
    """Where the sign-in page takes the SDK from.

    Raises:
        SettingsError: from here, and it is not here.
    """
    urls = own_sdk_urls() if settings.firebase_sdk == "own" else cdn_sdk_urls()
    if not urls:
        problem = "the SDK's files are not here: run `make firebase-sdk`, or set it to cdn"
        raise SettingsError([f"VADEMECUM_FIREBASE_SDK: {problem}"])
    return urls


def oidc_client(settings: Settings) -> OidcClient:
    """What the issuer calls this server."""
    secret = settings.oidc_client_secret
    return OidcClient(
        issuer=settings.oidc_issuer or "",
        client_id=settings.oidc_client_id,
        client_secret=secret.get_secret_value() if secret else None,
        name=settings.oidc_name,
        prompt=settings.oidc_prompt,
        redirect_uri=settings.public_url + CALLBACK_PATH,
    )
