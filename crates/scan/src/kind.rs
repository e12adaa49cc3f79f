//! Kinds of findings.

macro_rules! finding_kinds {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Kind of a finding. The variants' names are the labels used on the wire.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum FindingKind {
            $($(#[$doc])* $name,)*
        }

        impl FindingKind {
            /// Every kind, in declaration order.
            pub const ALL: [FindingKind; [$(stringify!($name)),*].len()] = [$(FindingKind::$name),*];

            /// The label used on the wire.
            pub const fn name(self) -> &'static str {
                match self {
                    $(FindingKind::$name => stringify!($name),)*
                }
            }

            /// Replacement of a finding of this kind in redacted text.
            pub const fn replacement(self) -> &'static str {
                match self {
                    $(FindingKind::$name => concat!("[REDACTED:", stringify!($name), "]"),)*
                }
            }
        }
    };
}

finding_kinds! {
    /// An OpenAI key.
    OpenAiKey,
    /// An Anthropic key.
    AnthropicKey,
    /// An AWS access key, long-lived or temporary.
    AwsAccessKey,
    /// A Google Cloud service account file.
    GcpServiceAccount,
    /// An Azure storage connection string, or the account key in one.
    AzureConnectionString,
    /// A GitHub personal access token.
    GitHubPat,
    /// A GitHub app's installation token.
    GitHubAppToken,
    /// A GitHub OAuth token.
    GitHubOAuthToken,
    /// A GitHub app's user token.
    GitHubUserToken,
    /// A GitHub refresh token.
    GitHubRefreshToken,
    /// A Slack bot token.
    SlackBotToken,
    /// A Slack user token.
    SlackUserToken,
    /// A Slack OAuth token.
    SlackOAuthToken,
    /// A Slack app-level token.
    SlackAppToken,
    /// A Slack refresh token.
    SlackRefreshToken,
    /// A PostgreSQL connection URL.
    PostgresUrl,
    /// A MySQL connection URL.
    MysqlUrl,
    /// A MongoDB connection URL.
    MongodbUrl,
    /// An RSA private key.
    RsaPrivateKey,
    /// An elliptic-curve private key.
    EcPrivateKey,
    /// An OpenSSH private key.
    OpensshPrivateKey,
    /// A private key in PKCS #8 form.
    PrivateKey,
    /// A PGP private key.
    PgpPrivateKey,
    /// A US social security number.
    SsnPattern,
    /// A payment card number with a valid check digit.
    CreditCardLuhn,
    /// An e-mail address.
    EmailAddress,
    /// Text too random to be prose.
    GenericHighEntropy,
    /// A match of one of the operator's own patterns, or data too deep to be looked at.
    Custom,
    /// A key or token in the format of its vendor; not of the published algorithm.
    VendorToken,
    /// A value that a name, an option, a header or a URL presents as a credential; not of the published algorithm.
    Credential,
}

impl FindingKind {
    /// The kind with this label.
    pub fn from_name(name: &str) -> Option<FindingKind> {
        FindingKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Precedence among kinds that overlap: the highest names the finding.
    pub const fn priority(self) -> u8 {
        match self {
            FindingKind::GenericHighEntropy => 0,
            FindingKind::EmailAddress => 1,
            // Below the published kinds, whose labels stay as they are.
            FindingKind::VendorToken | FindingKind::Credential => 2,
            _ => 3,
        }
    }

    /// Whether the kind is an addition to the published algorithm. It is cut from what is written, and changes no answer unless the
    /// policy says in writing what to do about credentials.
    pub const fn is_additional(self) -> bool {
        matches!(self, FindingKind::VendorToken | FindingKind::Credential)
    }
}
