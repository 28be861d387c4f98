"""A host of an official SDK's client, in a process of its own, with its owner at the browser."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.processes import Browser

HERE = Path(__file__).parent
PYTHON = (sys.executable, str(HERE / "python_client.py"))
TYPESCRIPT = ("node", str(HERE / "typescript" / "client.mjs"))


class Host:
    """Keeps its registration and tokens in a file, as hosts do over restarts."""

    def __init__(self, command: tuple[str, ...], url: str, state_file: Path) -> None:
        self.state_file = state_file
        self.authorizations = 0
        self._browser = Browser(url)
        self._process = subprocess.Popen(
            (*command, f"{url}/mcp", str(state_file)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def do(self, action: str, **parameters: Any) -> Any:
        """Sends one request; plays the owner's browser when the client asks for it."""
        self._say({"do": action, **parameters})
        while True:
            heard = self._hear()
            if "authorize" in heard:
                self.authorizations += 1
                self._say({"callback": self._browser.authorize(heard["authorize"])})
                continue
            assert "error" not in heard, heard["error"]
            return heard["ok"]

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Calls a tool and returns its structured answer."""
        result = self.do("call", name=tool, arguments=arguments)
        assert not result.get("isError"), result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        answer: dict[str, Any] = result["structuredContent"]
        return answer

    def tokens(self) -> dict[str, Any]:
        tokens: dict[str, Any] = json.loads(self.state_file.read_text())["tokens"]
        return tokens

    def kill(self) -> None:
        """kill -9, and everything of this side released; once more does nothing."""
        self._process.kill()
        with self._process, self._browser:
            pass

    def _say(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the client host ended"
        heard: dict[str, Any] = json.loads(line)
        return heard
