// An OAuth server of somebody else (oidc-provider): client credentials in the body and by HTTP Basic, JWT access tokens.
// Prints its port. The argument is the manifest digest that tokens carry.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { generateKeyPairSync } from "node:crypto";

const require = createRequire(process.env.NODE_PATH + "/");
const { default: Provider } = await import(require.resolve("oidc-provider"));

const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const key = { ...privateKey.export({ format: "jwk" }), use: "sig", alg: "ES256", kid: "judge" };

const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    jwks: { keys: [key] },
    clients: ["client_secret_post", "client_secret_basic"].map((method) => ({
      client_id: method,
      client_secret: "planted-" + method,
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
      id_token_signed_response_alg: "ES256",
      token_endpoint_auth_method: method,
    })),
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => "urn:judge",
        getResourceServerInfo: () => ({
          scope: "jobs:run jobs:read",
          audience: "urn:judge",
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: "ES256" } },
        }),
      },
    },
    extraTokenClaims: () => ({ manifest_digest: process.argv[2] }),
  });
  server.on("request", provider.callback());
  console.log(server.address().port);
});
