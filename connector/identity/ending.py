"""Ending what an owner's sign-ins have opened: at once in this process, within five seconds in others."""

import logging

from connector.pages.sessions import Sessions
from oauth import grants, personal_tokens
from oauth.server import AuthorizationServer

log = logging.getLogger(__name__)


def end_logins(server: AuthorizationServer, owner: str) -> None:
    """Signs every browser and every app of the owner out; personal tokens were made by hand and stay."""
    Sessions(server.records, server.now).end_all(owner)
    for grant in grants.of_subject(server, owner):
        grants.end(server, grant.grant_id)
    log.info("owner.logins_ended", extra={"owner": owner})


def end_access(server: AuthorizationServer, owner: str) -> None:
    """All of that, and the personal tokens too."""
    end_logins(server, owner)
    for token in personal_tokens.of_subject(server, owner):
        personal_tokens.revoke(server, token.token_id)
