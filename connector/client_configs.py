"""Where each client keeps its configuration, and how an MCP server is entered there."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

ENTRY = "vademecum"
Format = Literal["json", "toml"]
TRANSPORT = frozenset(("type", "url", "serverUrl", "httpUrl", "command", "args", "env", "headers"))
"""What of an entry says how the server is reached; the rest is the person's own, and stays."""


@dataclass(frozen=True)
class ClientConfig:
    """A client's file, the table in it that names its servers, and an entry for a URL."""

    title: str
    path: Callable[[Mapping[str, str]], Path]
    table: str
    entry: Callable[[str], dict[str, Any]] | None
    """None for a client that can only start a program."""
    next_step: str
    format: Format = "json"


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or "~").expanduser()


def _config(environ: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":
        return _home(environ) / "Library" / "Application Support"
    return Path(environ.get("XDG_CONFIG_HOME") or _home(environ) / ".config")


def _in_home(*parts: str) -> Callable[[Mapping[str, str]], Path]:
    return lambda environ: _home(environ).joinpath(*parts)


def _in_config(*parts: str) -> Callable[[Mapping[str, str]], Path]:
    return lambda environ: _config(environ).joinpath(*parts)


def _extension(name: str, file: str) -> Callable[[Mapping[str, str]], Path]:
    return _in_config("Code", "User", "globalStorage", name, "settings", file)


def _codex(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("CODEX_HOME") or _home(environ) / ".codex") / "config.toml"


CLIENTS: Mapping[str, ClientConfig] = {
    "claude-code": ClientConfig(
        "Claude Code",
        _in_home(".claude.json"),
        "mcpServers",
        lambda url: {"type": "http", "url": url},
        "In Claude Code: /mcp, then choose vademecum to sign in.",
    ),
    "claude-desktop": ClientConfig(
        "Claude Desktop",
        _in_config("Claude", "claude_desktop_config.json"),
        "mcpServers",
        None,
        "Quit Claude Desktop and open it again.",
    ),
    "codex": ClientConfig(
        "Codex",
        _codex,
        "mcp_servers",
        lambda url: {"url": url},
        "Run: codex mcp login vademecum",
        "toml",
    ),
    "cursor": ClientConfig(
        "Cursor",
        _in_home(".cursor", "mcp.json"),
        "mcpServers",
        lambda url: {"url": url},
        "In Cursor: Settings, MCP, then sign in at vademecum.",
    ),
    "vscode": ClientConfig(
        "VS Code",
        _in_config("Code", "User", "mcp.json"),
        "servers",
        lambda url: {"type": "http", "url": url},
        "In VS Code: MCP: List Servers, start vademecum and sign in.",
    ),
    "windsurf": ClientConfig(
        "Windsurf",
        _in_home(".codeium", "windsurf", "mcp_config.json"),
        "mcpServers",
        lambda url: {"serverUrl": url},
        "In Windsurf: refresh the MCP servers and sign in.",
    ),
    "cline": ClientConfig(
        "Cline",
        _extension("saoudrizwan.claude-dev", "cline_mcp_settings.json"),
        "mcpServers",
        lambda url: {"type": "streamableHttp", "url": url},
        "In Cline: MCP Servers, Remote, then sign in at vademecum.",
    ),
    "roo-code": ClientConfig(
        "Roo Code",
        _extension("rooveterinaryinc.roo-cline", "mcp_settings.json"),
        "mcpServers",
        lambda url: {"type": "streamable-http", "url": url},
        "In Roo Code: MCP Servers, then refresh vademecum.",
    ),
    "gemini-cli": ClientConfig(
        "Gemini CLI",
        _in_home(".gemini", "settings.json"),
        "mcpServers",
        lambda url: {"httpUrl": url},
        "In Gemini CLI: /mcp auth vademecum",
    ),
}
