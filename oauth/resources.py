"""Resource indicators (RFC 8707): this server has one resource, and tokens are good for nothing else."""

from collections.abc import Iterable

from oauth.errors import InvalidTarget


def check_resources(requested: Iterable[str], issuer: str, resource: str) -> None:
    """Absent, the resource, the origin, or either with a slash: all mean our one resource.

    Raises:
        InvalidTarget: any other value, however alike it looks (§2).
    """
    if not set(requested) <= {issuer, issuer + "/", resource, resource + "/"}:
        raise InvalidTarget("this server issues tokens for its own MCP endpoint only")
