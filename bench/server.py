"""How fast a real server answers: refusals, cheap calls, saves and searches, over keep-alive connections.

Run with `python -m bench.server [MEMORIES]`. The server is a process of its own on SQLite with the local
embedder; the load comes from this process, so both share the machine's cores.
"""

import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics
from statistics import quantiles

from tests.processes import Server, running

CONNECTIONS = 8
SECONDS = 4.0
PROSE = re.findall(r"[A-Za-z]{2,}", " ".join(topics.values()))
"""English words in their natural frequency: the interpreter's own manual."""
SENTENCE_WORDS = 14


def request(token: str, method: str, params: dict[str, object], *, modern: bool) -> bytes:
    """The bytes of one MCP request."""
    if modern:
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = params | {"_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    head = [
        "POST /mcp HTTP/1.1",
        "Host: {host}",
        f"Authorization: Bearer {token}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"Content-Length: {len(body)}",
        f"MCP-Protocol-Version: {'2026-07-28' if modern else '2025-11-25'}",
    ]
    if modern:
        head += [f"Mcp-Method: {method}"] + ([f"Mcp-Name: {params['name']}"] if "name" in params else [])
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def call(token: str, tool: str, arguments: dict[str, object], *, modern: bool = False) -> bytes:
    return request(token, "tools/call", {"name": tool, "arguments": arguments}, modern=modern)


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, message: bytes) -> bytes:
    writer.write(message)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    body = await reader.readexactly(length)
    return head[9:12] + body


async def load(server: Server, make: Callable[[int], bytes], expected: bytes) -> list[float]:
    """Latencies in milliseconds of what `CONNECTIONS` connections could ask in `SECONDS`."""
    latencies: list[float] = []
    host = f"127.0.0.1:{server.port}".encode()
    deadline = time.perf_counter() + SECONDS

    async def connection(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        asked = number * 1_000_000
        while time.perf_counter() < deadline:
            asked += 1
            message = make(asked).replace(b"{host}", host, 1)
            started = time.perf_counter()
            answer = await exchange(reader, writer, message)
            latencies.append((time.perf_counter() - started) * 1000)
            assert answer.startswith(expected), answer[:300]
            assert b'"isError":true' not in answer, answer[:300]
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(connection(number) for number in range(CONNECTIONS)))
    return latencies


def sentence(number: int) -> str:
    """A stretch of prose and its number, always the same for the same number."""
    start = number * 7919 % (len(PROSE) - SENTENCE_WORDS)
    return f"{' '.join(PROSE[start : start + SENTENCE_WORDS])} {number}"


def question(number: int) -> str:
    """A few words from the middle of that stretch."""
    return " ".join(sentence(number).split()[3:9])


def report(name: str, latencies: list[float]) -> None:
    cuts = quantiles(latencies, n=100)
    rate = len(latencies) / SECONDS
    sys.stdout.write(
        f"{name:44} {rate:9.0f}/s   p50 {cuts[49]:7.2f}   p95 {cuts[94]:7.2f}   p99 {cuts[98]:7.2f} ms\n"
    )


def resident_mb(server: Server) -> float:
    assert server.process is not None
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def measure(server: Server, token: str, memories: int) -> None:
    def run(name: str, make: Callable[[int], bytes], expected: bytes = b"200") -> None:
        report(name, asyncio.run(load(server, make, expected)))

    run("a bad token is refused", lambda _: request("bad", "ping", {}, modern=False), b"401")
    run("ping, 2025-11-25", lambda _: request(token, "ping", {}, modern=False))
    run("tools/list, 2025-11-25", lambda _: request(token, "tools/list", {}, modern=False))
    run("tools/list, 2026-07-28", lambda _: request(token, "tools/list", {}, modern=True))
    run("memory_status, 2026-07-28", lambda _: call(token, "memory_status", {}, modern=True))
    run(
        f"search over {memories} memories",
        lambda n: call(token, "search_context", {"query": question(n % memories)}),
    )
    run("save", lambda n: call(token, "save_context", {"content": sentence(n)}))
    sys.stdout.write(f"{'resident memory of the server':44} {resident_mb(server):9.0f} MB\n")


def main() -> None:
    memories = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory(prefix="vademecum-bench-") as directory:
        server = Server(
            Path(directory) / "state", {"VADEMECUM_EMBEDDER": "local", "VADEMECUM_LOG_LEVEL": "warning"}
        )
        with running(server):
            rows = Path(directory) / "rows.jsonl"
            rows.write_text("".join(json.dumps({"content": sentence(n)}) + "\n" for n in range(memories)))
            started = time.perf_counter()
            server.run("import", str(rows))
            rate = memories / (time.perf_counter() - started)
            sys.stdout.write(f"{'import':44} {rate:9.0f}/s\n")
            scopes = ("--scope", "memory:read", "--scope", "memory:write")
            measure(server, server.run("tokens", "add", *scopes).strip(), memories)


if __name__ == "__main__":
    main()
