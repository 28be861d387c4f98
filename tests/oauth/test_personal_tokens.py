"""Personal access tokens: made once, shown once, good until they are not."""

from datetime import timedelta
from typing import Any

import pytest

from oauth import access_tokens, grants, personal_tokens
from oauth.errors import InvalidToken
from oauth.personal_tokens import PersonalToken, Profile
from oauth.server import AuthorizationServer
from tests.oauth.stand import SUBJECT, Clock, MemoryRecords, make_server

PROFILE = Profile(
    frozenset({"memory:read"}), tools=("search",), states=("active",), spaces=("work",), origins=()
)


def make(server: AuthorizationServer, **values: Any) -> tuple[PersonalToken, str]:
    usual: dict[str, Any] = {"subject": SUBJECT, "name": "Backup script", "profile": PROFILE}
    return personal_tokens.create(server, **(usual | values))


def refuse(server: AuthorizationServer, bearer: str) -> None:
    with pytest.raises(InvalidToken):
        personal_tokens.verify(server, bearer)


def test_a_token_carries_its_profile(server: AuthorizationServer, clock: Clock) -> None:
    made, bearer = make(server)
    assert personal_tokens.is_personal_token(bearer)
    token = personal_tokens.verify(server, bearer)
    assert (token.subject, token.name, token.profile, token.app) == (
        SUBJECT,
        "Backup script",
        PROFILE,
        f"pat:{made.token_id}",
    )
    assert (token.created_at, token.expires_at, token.last_used_at) == (clock(), None, clock())
    unlimited = Profile(frozenset({"memory:read"}))
    assert personal_tokens.verify(server, make(server, profile=unlimited)[1]).profile == unlimited


def test_scopes_that_do_not_exist_are_not_in_it(server: AuthorizationServer) -> None:
    made, _ = make(server, profile=Profile(frozenset({"memory:read", "admin"})), name="\u202e")
    assert made.profile.scopes == {"memory:read"}
    assert made.name == "Unnamed token"


@pytest.mark.threat("ST-01")
def test_its_secret_is_not_stored(server: AuthorizationServer, records: MemoryRecords) -> None:
    made, bearer = make(server)
    assert bearer.rpartition(".")[2] not in repr(records.dump())
    assert made.secret_hash not in repr(made)


@pytest.mark.threat("BR-03")
@pytest.mark.parametrize(
    "alter", [lambda t: t[:-1], lambda t: t + "x", str.upper, lambda t: t[:-43] + "A" * 43]
)
def test_anything_else_is_refused(server: AuthorizationServer, alter: Any) -> None:
    _, bearer = make(server)
    refuse(server, alter(bearer))
    refuse(server, f"vmc_pat_{'0' * 32}.{'A' * 43}")
    refuse(server, "")
    with pytest.raises(InvalidToken):
        access_tokens.verify(server, bearer)


@pytest.mark.threat("ST-02")
def test_the_stored_hash_is_not_a_token(server: AuthorizationServer) -> None:
    made, _ = make(server)
    refuse(server, f"vmc_pat_{made.token_id}.{made.secret_hash}")


def test_it_expires(server: AuthorizationServer, clock: Clock) -> None:
    _, bearer = make(server, expires_at=clock() + timedelta(days=7))
    clock.advance(days=7, seconds=-1)
    assert personal_tokens.verify(server, bearer)
    clock.advance(seconds=1)
    refuse(server, bearer)


def test_revoking_tells_those_who_cache(server: AuthorizationServer) -> None:
    told: list[str] = []
    server.on_grant_changed.append(told.append)
    made, bearer = make(server)
    personal_tokens.revoke(server, "../x")
    personal_tokens.revoke(server, made.token_id)
    assert told == [made.app]
    refuse(server, bearer)


@pytest.mark.threat("KR-01")
def test_the_emergency_ends_it_too(server: AuthorizationServer, records: MemoryRecords, clock: Clock) -> None:
    _, bearer = make(server)
    other = make_server(records, clock)
    assert personal_tokens.verify(other, bearer)
    grants.end_all(server)
    refuse(server, bearer)
    clock.advance(seconds=30)
    refuse(other, bearer)
    assert personal_tokens.verify(other, make(server)[1])


def test_its_use_is_noted_every_ten_minutes(
    server: AuthorizationServer, records: MemoryRecords, clock: Clock
) -> None:
    _, bearer = make(server)
    personal_tokens.verify(server, bearer)
    writes, noted = records.writes, clock()
    clock.advance(minutes=9)
    assert personal_tokens.verify(server, bearer).last_used_at == noted
    assert records.writes == writes
    clock.advance(minutes=1)
    assert personal_tokens.verify(server, bearer).last_used_at == clock()


def test_a_person_sees_his_own(server: AuthorizationServer, clock: Clock) -> None:
    for subject in (SUBJECT, "somebody", SUBJECT):
        make(server, subject=subject)
        clock.advance(seconds=1)
    mine = personal_tokens.of_subject(server, SUBJECT)
    assert [token.subject for token in mine] == [SUBJECT, SUBJECT]
    assert mine[0].created_at < mine[1].created_at
