//! The planted credentials, the manifest that has them, and the servers that issue them.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use proctor_core::json::Json;

use super::super::place::Place;
use super::super::scheduler::proofs;

/// A task of the manifest.
pub struct Task {
    pub id: &'static str,
    /// Whether its run succeeds.
    pub is_ok: bool,
    /// Values that it writes to its streams.
    pub values: usize,
}

const fn good(id: &'static str, values: usize) -> Task {
    Task { id, is_ok: true, values }
}

const fn bad(id: &'static str) -> Task {
    Task { id, is_ok: false, values: 0 }
}

/// All tasks, in the order in which they are run.
pub const TASKS: &[Task] = &[
    good("env", 4),
    good("inputs", 1),
    good("file", 1),
    good("oidc", 1),
    good("exchange", 1),
    good("aws", 3),
    good("azure", 1),
    good("gcp", 1),
    good("entra", 1),
    good("stripe", 1),
    good("command", 1),
    good("literal", 0),
    bad("gated"),
    bad("oidc-fails"),
    bad("command-fails"),
    bad("opa-fails"),
];

/// Names of values with characters that encodings change.
const VALUES: &[&str] = &[
    "token_env",
    "inputs.token",
    "token_file",
    "client_secret",
    "client_credentials token",
    "subject_token_env",
    "exchange client_secret file",
    "exchange token",
    "sts secret key",
    "azure token",
    "gcp token",
    "client_assertion",
    "blueprint token",
    "agent token",
    "shell.env",
    "error of the token endpoint",
    "standard error of a command",
    "error of opa",
];

/// Names of values that stand in headers, names of keys, or addresses.
const PLAIN: &[&str] = &[
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "sts session token",
    "IDENTITY_HEADER",
    "stripe key_env",
    "stripe key_command",
    "opa endpoint",
];

/// A value that must not be found.
pub struct Needle {
    pub name: String,
    pub value: String,
    forms: Vec<Vec<u8>>,
}

impl Needle {
    fn new(name: &str, value: &str) -> Needle {
        let json = |text: &str| {
            let text = Json::from(text).to_string();
            text[1..text.len() - 1].to_owned()
        };
        let ascii: String = json(value)
            .chars()
            .map(
                |letter| {
                    if letter.is_ascii() { letter.to_string() } else { format!("\\u{:04x}", letter as u32) }
                },
            )
            .collect();
        let mut forms = vec![value.to_owned(), json(value), ascii, quoted(value)];
        for shift in ["", "x", "xx"] {
            let bytes = format!("{shift}{value}");
            for encoded in [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
                // The letters at the ends depend on the neighbours.
                forms.push(encoded[shift.len() * 2..encoded.len() - 2].to_owned());
            }
        }
        let forms = forms.into_iter().map(String::into_bytes).collect();
        Needle { name: name.to_owned(), value: value.to_owned(), forms }
    }

    pub fn is_in(&self, bytes: &[u8]) -> bool {
        self.forms.iter().any(|form| memchr::memmem::find(bytes, form).is_some())
    }
}

/// Percent encoding of everything but letters, digits and `-._~`.
fn quoted(text: &str) -> String {
    let is_kept = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if is_kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// All planted values.
pub struct Planted {
    values: Vec<(&'static str, String)>,
}

impl Planted {
    pub fn new() -> Planted {
        let special = VALUES.iter().enumerate().map(|(number, name)| {
            (*name, format!("q7{number:02}\"kz/{number}+wé&v=u{}", 7_919_424_242 + 104_729 * number as u64))
        });
        let plain = PLAIN.iter().enumerate().map(|(number, name)| {
            let prefix = if name.starts_with("stripe") { "sk_test_" } else { "" };
            (*name, format!("{prefix}p9{number:02}xk{}", 6_700_417_131 + 130_363 * number as u64))
        });
        Planted { values: special.chain(plain).collect() }
    }

    fn of(&self, name: &str) -> &str {
        &self.values.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("{name}")).1
    }

    pub fn needles(&self) -> Vec<Needle> {
        self.values.iter().map(|(name, value)| Needle::new(name, value)).collect()
    }

    /// Answers of the token endpoints and of OPA.
    pub fn answer(&self, path: &str, head: &str) -> (u16, String) {
        let token = |name: &str| {
            let reply = Json::object().with("access_token", self.of(name)).with("token_type", "Bearer");
            (200, reply.with("expires_in", 3600).to_string())
        };
        match path.split('?').next().unwrap_or_default() {
            "/oidc" => token("client_credentials token"),
            "/exchange" => token("exchange token"),
            "/sts" | "/sts/" => (200, self.role()),
            "/azure" => {
                assert!(head.contains(self.of("IDENTITY_HEADER")), "{head}");
                token("azure token")
            }
            "/entra/oauth2/v2.0/token" => {
                // The second request carries the first one's token, which is longer than the assertion.
                let is_first = head.contains(&format!("content-length: {}", self.first_length()));
                token(if is_first { "blueprint token" } else { "agent token" })
            }
            path if path.starts_with("/computeMetadata/") => token("gcp token"),
            "/allow" => (200, r#"{"result":{"allow":true,"reason":"ok"}}"#.to_owned()),
            "/opa-fails" => (500, format!(r#"{{"error":{}}}"#, Json::from(self.of("error of opa")))),
            _ => {
                let error = Json::from(self.of("error of the token endpoint"));
                (400, format!(r#"{{"error":{error},"error_description":{error}}}"#))
            }
        }
    }

    /// Bytes of the first form that the provider `entra-agent-id` posts.
    fn first_length(&self) -> usize {
        let pairs = [
            ("grant_type", "client_credentials"),
            ("client_id", "blueprint"),
            ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
            ("client_assertion", self.of("client_assertion")),
            ("scope", "api://AzureADTokenExchange/.default"),
            ("fmi_path", "agent"),
        ];
        pairs.iter().map(|(name, value)| name.len() + quoted(value).len() + 2).sum::<usize>() - 1
    }

    fn role(&self) -> String {
        let escaped = |name: &str| self.of(name).replace('&', "&amp;").replace('"', "&quot;");
        format!(
            "<AssumeRoleResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><AssumeRoleResult><Credentials><AccessKeyId>ASIAEXAMPLE</AccessKeyId><SecretAccessKey>{}</SecretAccessKey><SessionToken>{}</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>",
            escaped("sts secret key"),
            escaped("sts session token")
        )
    }

    /// Writes manifest and files, and sets variables. `server` issues credentials.
    pub fn put(&self, place: &mut Place, server: &str) {
        for (name, file) in [
            ("token_file", "token"),
            ("exchange client_secret file", "exchange-secret"),
            ("stripe key_command", "stripe-key"),
        ] {
            place.write(file, self.of(name));
        }
        place.write(
            "fails.sh",
            &format!("printf '%s' '{}' >&2; exit 3\n", self.of("standard error of a command")),
        );
        for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "IDENTITY_HEADER"] {
            place.set(name, self.of(name));
        }
        place.set("PLANTED_TOKEN", self.of("token_env"));
        place.set("PLANTED_SUBJECT", self.of("subject_token_env"));
        place.set("PLANTED_STRIPE", self.of("stripe key_env"));
        place.set("AWS_ENDPOINT_URL_STS", &format!("{server}/sts"));
        place.set("IDENTITY_ENDPOINT", &format!("{server}/azure"));
        place.set("GCE_METADATA_HOST", server.trim_start_matches("http://"));
        let key = proofs::key(7);
        let document = self.manifest(server, &proofs::pem(&key));
        place.write("m.json", &document);
        place.set("PLANTED_PROOF", &proofs::token(&key, &document, r#""jti":"planted","#));
    }

    fn manifest(&self, server: &str, pem: &str) -> String {
        let text = |name: &str| Json::from(self.of(name)).to_string();
        let one = r#"[{"source":"credentials.access_token.value","target":{"kind":"env","name":"P_TOKEN"}}]"#;
        let all = r#"[{"source":"credentials.access_token.value","target":{"kind":"env","name":"P_TOKEN"}},{"source":"credentials.access_token.value","target":{"kind":"env","name":"P_JSON"},"format":"json"},{"source":"credentials.access_token.value","target":{"kind":"file","name":"token","expose_as":"F_TOKEN"}},{"source":"credentials.access_token.value","target":{"kind":"stdin"},"format":"base64"}]"#;
        let aws = r#"[{"source":"credentials.access_token.value","target":{"kind":"env","name":"P_SESSION"}},{"source":"credentials.secret_access_key.value","target":{"kind":"env","name":"P_SECRET"}},{"source":"credentials.access_key_id.value","target":{"kind":"env","name":"P_ID"}}]"#;
        let key = r#"[{"source":"credentials.api_key.value","target":{"kind":"env","name":"P_KEY"}}]"#;
        let stripe = |source: &str| {
            format!(
                r#"{{"key_strategy":"precreated","account_mode":"test","permission_sets":{{"all":{{{source}}}}}}}"#
            )
        };
        let config = |config: String| format!(r#"{{"mode":"service","provider_config":{config}}}"#);
        let profiles: Vec<(&str, &str, String, &str)> = vec![
            ("env", "env-bearer", config(r#"{"token_env":"PLANTED_TOKEN"}"#.to_owned()), all),
            (
                "inputs",
                "env-bearer",
                format!(r#"{{"mode":"service","inputs":{{"token":{}}}}}"#, text("inputs.token")),
                one,
            ),
            ("file", "file-bearer", config(r#"{"token_file":"token"}"#.to_owned()), one),
            (
                "oidc",
                "oidc-client-credentials",
                config(format!(
                    r#"{{"token_endpoint":"{server}/oidc","client_id":"me","client_secret":{}}}"#,
                    text("client_secret")
                )),
                one,
            ),
            (
                "exchange",
                "oidc-token-exchange",
                format!(
                    r#"{{"mode":"exchange","provider_config":{{"token_endpoint":"{server}/exchange","subject_token_env":"PLANTED_SUBJECT","client_id":"me","client_secret":{{"value_from":{{"file":"exchange-secret"}}}}}}}}"#
                ),
                one,
            ),
            (
                "aws",
                "aws-sts-assume-role",
                config(r#"{"role_arn":"arn:aws:iam::123456789012:role/demo"}"#.to_owned()),
                aws,
            ),
            (
                "azure",
                "azure-managed-identity",
                config(r#"{"resource":"https://vault.azure.net"}"#.to_owned()),
                one,
            ),
            (
                "gcp",
                "gcp-workload-identity",
                config(r#"{"scopes":["https://www.googleapis.com/auth/cloud-platform"]}"#.to_owned()),
                one,
            ),
            (
                "entra",
                "entra-agent-id",
                config(format!(
                    r#"{{"tenant_id":"tenant","blueprint_app_id":"blueprint","agent_identity_id":"agent","authority":"{server}/entra","client_assertion":{}}}"#,
                    text("client_assertion")
                )),
                one,
            ),
            ("stripe", "stripe-api-key", config(stripe(r#""key_env":"PLANTED_STRIPE""#)), key),
            ("command", "stripe-api-key", config(stripe(r#""key_command":"cat stripe-key""#)), key),
            (
                "oidc-fails",
                "oidc-client-credentials",
                config(format!(
                    r#"{{"token_endpoint":"{server}/fails","client_id":"me","client_secret":{}}}"#,
                    text("client_secret")
                )),
                one,
            ),
            ("command-fails", "stripe-api-key", config(stripe(r#""key_command":"sh fails.sh""#)), key),
        ];
        let identities: Vec<String> = profiles
            .iter()
            .map(|(id, provider, auth, bindings)| {
                format!(r#"{{"id":"{id}","provider":"{provider}","auth":{auth},"presentation":{{"bindings":{bindings}}}}}"#)
            })
            .collect();
        let tasks: Vec<String> = TASKS
            .iter()
            .map(|task| {
                let own = match task.id {
                    "literal" => format!(
                        r#","shell":{{"program":"python3","args":["emit.py"],"env":{{"QUIET":"1","PASSWORD":{}}}}},"authorization":{{"ref":"opa"}},"authorization_proof":{{"ref":"proof"}}"#,
                        text("shell.env")
                    ),
                    "opa-fails" => r#","shell":{"program":"python3","args":["emit.py"]},"authorization":{"ref":"opa-fails"}"#.to_owned(),
                    "gated" => r#","shell":{"program":"python3","args":["emit.py"]},"identity":{"ref":"env"},"approval":{"policy":"manual"}"#.to_owned(),
                    id => format!(r#","shell":{{"program":"python3","args":["emit.py"]}},"identity":{{"ref":"{id}"}}"#),
                };
                format!(
                    r#"{{"id":"{}","name":"{}","target":{{"session_target":"shell"}},"schedule":{{"cron":"0 9 * * *"}},"evidence":{{"ref":"e"}}{own}}}"#,
                    task.id, task.id
                )
            })
            .collect();
        format!(
            r#"{{"version":"0.2","identity_profiles":[{}],"authorization_proof_profiles":[{{"id":"proof","method":"jwt","public_key":{},"proof":{{"value_from":{{"env":"PLANTED_PROOF"}}}}}}],"authorization_profiles":[{{"id":"opa","provider":"opa","provider_config":{{"endpoint":"{server}/allow?key={}"}}}},{{"id":"opa-fails","provider":"opa","provider_config":{{"endpoint":"{server}/opa-fails"}}}}],"evidence_profiles":[{{"id":"e","provider":"ledger"}}],"workflows":[{{"id":"w","name":"W","tasks":[{}]}}]}}"#,
            identities.join(","),
            Json::from(pem),
            self.of("opa endpoint"),
            tasks.join(",")
        )
    }
}
