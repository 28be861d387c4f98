"""What the sign-in page needs for Firebase's SDK: where it is, and what the browser must allow it.

The SDK is two files of the npm package `firebase`, put beside our own static files by `make firebase-sdk`
and never changed; or it comes from Google's CDN. The page holds no script of its own inline.
"""

from connector.identity.firebase import FirebaseProject
from connector.pages import static

SDK_VERSION = "12.19.0"
SDK_FILES = ("firebase-app-compat.js", "firebase-auth-compat.js")
SDK_DIRECTORY = "firebase"
CDN = f"https://www.gstatic.com/firebasejs/{SDK_VERSION}/"
API_HOSTS = "https://identitytoolkit.googleapis.com https://securetoken.googleapis.com"


def own_sdk_urls() -> tuple[str, ...]:
    """The SDK's files on our origin; empty when they were not put there."""
    urls = {file.name: file.url for file in static.load()}
    names = [f"{SDK_DIRECTORY}/{name}" for name in SDK_FILES]
    return tuple(urls[name] for name in names) if urls.keys() >= set(names) else ()


def cdn_sdk_urls() -> tuple[str, ...]:
    """The same files at Google's."""
    return tuple(CDN + name for name in SDK_FILES)


def content_security_policy(project: FirebaseProject) -> str:
    """Scripts from us, the CDN and Google's frame loader; requests to Firebase; its handler in a frame."""
    domain = project.auth_domain or f"{project.id}.firebaseapp.com"
    hosts, frames = API_HOSTS, f"https://{domain}"
    if project.emulator_host:
        hosts = frames = f"http://{project.emulator_host}"
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' {CDN} https://apis.google.com",
            "style-src 'self'",
            "img-src 'self'",
            f"connect-src 'self' {hosts}",
            f"frame-src {frames}",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        )
    )
