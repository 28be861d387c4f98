// A real OpenID Connect provider on loopback: node openid.mjs PORT REDIRECT_URI
// Anybody signs in with any name. POST /test/end?NAME deletes an account, /test/down and /test/up are an outage.
import Provider from "oidc-provider";

const [port, redirectUri] = process.argv.slice(2);
const ended = new Set();
let isDown = false;

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: "vademecum",
      client_secret: "a secret: with signs & spaces",
      redirect_uris: [redirectUri],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
    },
  ],
  claims: { openid: ["sub"], email: ["email", "email_verified"] },
  cookies: { keys: ["for tests only"] },
  pkce: { required: () => true },
  rotateRefreshToken: true,
  findAccount: (_context, id) =>
    ended.has(id)
      ? undefined
      : { accountId: id, claims: () => ({ sub: id, email: `${id}@example.org`, email_verified: id !== "new" }) },
});

provider.use(async (context, next) => {
  const [, word, action] = context.path.split("/");
  if (word === "test") {
    if (action === "end") ended.add(context.querystring);
    else isDown = action === "down";
    context.body = {};
    return;
  }
  if (isDown) {
    context.status = 503;
    context.body = "<html>maintenance</html>";
    return;
  }
  await next();
});

provider.listen(Number(port), "127.0.0.1");
