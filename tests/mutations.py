"""Removes protections one at a time, in a copy of the tree, and checks that a test notices each.

Run as `python -m tests.mutations`; exits 1 when one removal goes unnoticed.
"""

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
COPIED = ("connector", "oauth", "store", "templates", "tests", "deploy", "docs", "pyproject.toml")


@dataclass(frozen=True)
class Mutation:
    """One protection: the code that gives it, what is left without it, and the tests that must notice."""

    protection: str
    file: str
    code: str
    without: str
    tests: str


MUTATIONS = (
    Mutation(
        "PKCE verifier is compared",
        "oauth/pkce.py",
        "if not hmac.compare_digest(expected, code_challenge):",
        "if False:",
        "tests/oauth/test_pkce.py",
    ),
    Mutation(
        "only S256",
        "oauth/pkce.py",
        'if code_challenge_method != "S256":',
        "if False:",
        "tests/oauth/test_pkce.py",
    ),
    Mutation(
        "a code is bound to its redirect URI",
        "oauth/token.py",
        'if self.request.form.get("redirect_uri", grant.redirect_uri) != grant.redirect_uri:',
        "if False:",
        "tests/oauth/test_token.py",
    ),
    Mutation(
        "a reused refresh token ends the family",
        "oauth/rotation.py",
        "        grants.end(server, token.grant_id)\n        raise\n    if grant is None",
        "        raise\n    if grant is None",
        "tests/oauth/test_rotation.py",
    ),
    Mutation(
        "the replay window closes",
        "oauth/rotation.py",
        "abs(now - rotated_at) <= server.lifetimes.replay_window",
        "True",
        "tests/oauth/test_rotation.py",
    ),
    Mutation(
        "issuer and audience are checked",
        "oauth/access_tokens.py",
        'if claims.get("iss") != issuer or claims.get("aud") != resource:',
        "if False:",
        "tests/oauth/test_access_tokens.py",
    ),
    Mutation(
        "an expired token is dead",
        "oauth/access_tokens.py",
        'if not _is_time(claims.get("exp")) or now.timestamp() >= claims["exp"]:',
        "if False:",
        "tests/oauth/test_access_tokens.py",
    ),
    Mutation(
        "errors carry the issuer",
        "oauth/authorize.py",
        'return _add(redirect_uri, [*params, ("state", state), ("iss", issuer)])',
        'return _add(redirect_uri, [*params, ("state", state)])',
        "tests/oauth/test_authorize.py",
    ),
    Mutation(
        "forms need their token",
        "connector/pages/csrf.py",
        "return hmac.compare_digest(token(key, cookie, purpose).encode(), presented.encode())",
        "return True",
        "tests/connector/pages",
    ),
    Mutation(
        "forms are ours by Origin",
        "connector/pages/page.py",
        "return is_ours and is_same_origin",
        "return is_ours",
        "tests/connector/pages",
    ),
    Mutation(
        "a pending request belongs to its browser",
        "connector/pages/consent.py",
        "if pending is None or pending.request is None or not visit.is_same_browser(pending.browser):",
        "if pending is None or pending.request is None:",
        "tests/connector/pages",
    ),
    Mutation(
        "a foreign Origin is forbidden",
        "connector/guard.py",
        "if origin is not None and not self._is_allowed(origin):\n            raise",
        "if False:\n            raise",
        "tests/connector/test_guard.py",
    ),
    Mutation(
        "a foreign Host is misdirected",
        "connector/middleware.py",
        "if hosts[0].lower() not in self._allowed:",
        "if False:",
        "tests/connector/test_middleware.py",
    ),
    Mutation(
        "scopes are checked before the tool",
        "connector/guard.py",
        "if needed is None or needed <= principal.scopes or principal.is_openai:",
        "if True:",
        "tests/connector/test_guard.py",
    ),
    Mutation(
        "a fetch is led by the owner",
        "store/sqlite/memories.py",
        'WHERE owner = ? AND id = ? AND archived_at IS NULL",  # noqa: S608\n            (owner, memory_id),',
        "WHERE ? != '' AND id = ? AND archived_at IS NULL\",  # noqa: S608\n            (owner, memory_id),",
        "tests/contract",
    ),
    Mutation(
        "the document fetcher stays off private addresses",
        "oauth/safe_fetch.py",
        "return ip.is_global and not any(",
        "return True or not any(",
        "tests/oauth/test_safe_fetch.py",
    ),
    Mutation(
        "an ID token signs in once",
        "connector/identity/firebase.py",
        "if not self.records.create(USED_KIND, digest, {}, verified.expires_at):",
        "if False:",
        "tests/flows/test_firebase.py",
    ),
    Mutation(
        "an ID token's sign-in is fresh",
        "connector/identity/firebase.py",
        "if self.now() - verified.auth_time > MAX_SIGN_IN_AGE:",
        "if False:",
        "tests/flows/test_firebase.py",
    ),
    Mutation(
        "an ID token expires",
        "connector/identity/firebase_tokens.py",
        "and now < expires_at",
        "and True",
        "tests/flows/test_firebase.py",
    ),
    Mutation(
        "only the methods that are on sign in",
        "connector/identity/firebase_tokens.py",
        "and method in {SIGN_IN_PROVIDERS[name] for name in self.methods}",
        "and True",
        "tests/flows/test_firebase.py",
    ),
    Mutation(
        "a list of audiences is no audience",
        "connector/identity/firebase_tokens.py",
        '"strict_aud": True',
        '"strict_aud": False',
        "tests/flows/test_firebase.py",
    ),
    Mutation(
        "the refresh token is the same person's",
        "connector/identity/firebase.py",
        "if token.subject != subject:",
        "if False:",
        "tests/flows/test_firebase.py",
    ),
    Mutation(
        "an unverified address is on no list",
        "connector/identity/firebase.py",
        'token.email if token.is_email_verified else ""',
        "token.email",
        "tests/flows/test_firebase.py",
    ),
    Mutation(
        "old certificates are not used",
        "connector/identity/published.py",
        "return abs(now - self.fetched_at) < min(self.lifetime, max_age)",
        "return True",
        "tests/flows/test_firebase.py",
    ),
    Mutation(
        "a removed owner stays out",
        "connector/identity/admission.py",
        '        if self.is_removed(owner):\n            raise NotAdmitted(identity, "removed")',
        "        pass",
        "tests/flows/test_owners.py",
    ),
    Mutation(
        "an ended account stays ended",
        "connector/identity/renewal.py",
        "if credential.has_ended:",
        "if False:",
        "tests/flows/test_oidc.py",
    ),
    Mutation(
        "an issuer's answer is for the browser that asked",
        "connector/pages/oidc.py",
        "if login is None or not visit.is_same_browser(login.browser):",
        "if login is None:",
        "tests/flows/test_oidc.py",
    ),
    Mutation(
        "the nonce is compared",
        "connector/identity/oidc_tokens.py",
        '"nonce": nonce}',
        '"nonce": None}',
        "tests/flows/test_oidc.py",
    ),
    Mutation(
        "another issuer's answer is refused",
        "connector/identity/oidc.py",
        "if iss != issuer.issuer or",
        "if",
        "tests/flows/test_oidc.py",
    ),
    Mutation(
        "the emulator stays on this machine",
        "connector/unsafe_settings.py",
        "if settings.firebase_auth_emulator_host and not settings.is_on_this_machine_only:",
        "if False:",
        "tests/connector/test_settings.py",
    ),
    Mutation(
        "what is grave wants a fresh sign-in",
        "connector/pages/sessions.py",
        "return timedelta(0) <= now - self.created_at <= FRESH_LIFETIME",
        "return True",
        "tests/connector/pages/test_sessions.py",
    ),
)


def is_noticed(tree: Path, mutation: Mutation) -> bool:
    """Whether the tests fail without the protection; the tree is as before afterwards."""
    file = tree / mutation.file
    original = file.read_text()
    if original.count(mutation.code) != 1:
        raise SystemExit(f"{mutation.file} no longer holds exactly once: {mutation.code}")
    file.write_text(original.replace(mutation.code, mutation.without))
    try:
        command = (sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", mutation.tests)
        return subprocess.run(command, cwd=tree, capture_output=True).returncode == 1
    finally:
        file.write_text(original)


def main() -> None:
    survived = []
    with tempfile.TemporaryDirectory(prefix="vademecum-mutations-") as directory:
        tree = Path(directory)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(
                    source, tree / name, ignore=shutil.ignore_patterns("node_modules", "__pycache__")
                )
            else:
                shutil.copy(source, tree / name)
        for mutation in MUTATIONS:
            noticed = is_noticed(tree, mutation)
            sys.stdout.write(f"{'noticed ' if noticed else 'SURVIVED'}  {mutation.protection}\n")
            sys.stdout.flush()
            survived += [] if noticed else [mutation]
    sys.stdout.write(f"{len(MUTATIONS) - len(survived)} of {len(MUTATIONS)} noticed\n")
    sys.exit(1 if survived else 0)


if __name__ == "__main__":
    main()
