// A client host on the official TypeScript SDK, driven by JSON lines on standard input.
// Requests: {"do":"connect"} {"do":"tools"} {"do":"call","name","arguments"} {"do":"close"}.
// Answers: {"ok":…} | {"error":"…"}; {"authorize":URL} asks for one line {"callback":URL}.
import { readFileSync, writeFileSync, existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";

const [url, stateFile] = process.argv.slice(2);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");
const hear = async () => JSON.parse((await lines.next()).value);

class FileProvider {
  #state = existsSync(stateFile) ? JSON.parse(readFileSync(stateFile, "utf8")) : {};
  authorizationUrl = null;

  #keep(key, value) {
    this.#state[key] = value;
    writeFileSync(stateFile, JSON.stringify(this.#state));
  }

  get redirectUrl() { return "http://127.0.0.1:33418/callback"; }
  get clientMetadata() {
    return {
      client_name: "TypeScript test host",
      redirect_uris: [this.redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    };
  }
  state() { return crypto.randomUUID(); }
  clientInformation() { return this.#state.client; }
  saveClientInformation(client) { this.#keep("client", client); }
  tokens() { return this.#state.tokens; }
  saveTokens(tokens) { this.#keep("tokens", tokens); }
  saveCodeVerifier(verifier) { this.#keep("verifier", verifier); }
  codeVerifier() { return this.#state.verifier; }
  redirectToAuthorization(target) { this.authorizationUrl = target; }
}

const provider = new FileProvider();
let client = null;

async function open() {
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
  const opened = new Client({ name: "typescript-test-host", version: "1" });
  try {
    await opened.connect(transport);
    return opened;
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    say({ authorize: provider.authorizationUrl.href });
    const { callback } = await hear();
    const answer = new URL(callback).searchParams;
    if (answer.has("error")) throw new Error(answer.get("error"));
    await transport.finishAuth(answer.get("code"));
    return await open();
  }
}

const actions = {
  async connect() {
    client = await open();
    return client.getServerVersion();
  },
  async tools() { return (await client.listTools()).tools; },
  async call({ name, arguments: given }) { return await client.callTool({ name, arguments: given }); },
  async close() {
    await client?.close();
    return null;
  },
};

for (let request; (request = await hear().catch(() => null)); ) {
  try {
    say({ ok: await actions[request.do](request) });
  } catch (error) {
    say({ error: String(error) });
  }
  if (request.do === "close") process.exit(0);
}
