"""What every page says to the browser: keep nothing, run nothing, show it nowhere else, tell nobody."""

from starlette.datastructures import MutableHeaders

# No `form-action`: Chromium applies it to the redirects that follow a form, and the last one of a consent
# leads to the client (measured; OWASP CSP cheat sheet on form-action and redirects).
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'none'; style-src 'self'; img-src 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_ALWAYS = {
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
HSTS = "max-age=31536000"


def harden(
    headers: MutableHeaders,
    *,
    is_https: bool,
    is_opened_by_clients: bool,
    policy: str = CONTENT_SECURITY_POLICY,
) -> None:
    """Adds them, to redirects and errors as well.

    Several clients open the authorization pages in a popup and await `postMessage` from their own callback
    in it; `Cross-Origin-Opener-Policy: same-origin` would cut that popup off for good.
    """
    headers.update(_ALWAYS)
    headers["Content-Security-Policy"] = policy
    headers["Cross-Origin-Opener-Policy"] = "unsafe-none" if is_opened_by_clients else "same-origin"
    if is_https:
        headers["Strict-Transport-Security"] = HSTS
