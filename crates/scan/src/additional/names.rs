//! Names whose values are credentials.

/// How much a name alone says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strength {
    /// A password: whatever is written there is secret.
    Password,
    /// A password, or the working directory of a shell.
    Pwd,
    /// A token or key: also the name of other things, so its value has to look like one.
    Token,
}

use Strength::{Password, Pwd, Token};

/// Words that names end with, in text. Case is ignored.
pub(super) const KEYWORDS: &[(&str, Strength)] = &[
    ("password", Password),
    ("passwd", Password),
    ("passphrase", Password),
    ("passcode", Password),
    ("passwort", Password),
    ("_pass", Password),
    ("-pass", Password),
    ("sshpass", Password),
    ("pwd", Pwd),
    ("secret", Token),
    ("token", Token),
    ("credential", Token),
    ("credentials", Token),
    ("apikey", Token),
    ("api_key", Token),
    ("api-key", Token),
    ("access_key", Token),
    ("access-key", Token),
    ("accesskey", Token),
    ("secret_key", Token),
    ("secret-key", Token),
    ("secretkey", Token),
    ("secret_key_base", Token),
    ("private_key", Token),
    ("private-key", Token),
    ("privatekey", Token),
    ("auth_key", Token),
    ("auth-key", Token),
    ("authkey", Token),
    ("app_key", Token),
    ("app-key", Token),
    ("appkey", Token),
    ("service_key", Token),
    ("service-key", Token),
    ("signing_key", Token),
    ("signing-key", Token),
    ("encryption_key", Token),
    ("encryption-key", Token),
    ("encryptionkey", Token),
    ("master_key", Token),
    ("shared_key", Token),
    ("account_key", Token),
    ("license_key", Token),
    ("license-key", Token),
    ("licensekey", Token),
    ("anon_key", Token),
    ("role_key", Token),
    ("subscription-key", Token),
    ("sharedaccesskey", Token),
    ("redis_auth", Token),
    ("rediscli_auth", Token),
];

/// Endings of member names without signs, in lower case.
const PASSWORDS: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "passwort",
    "userpass",
    "dbpass",
    "sshpass",
    "passwords",
];

const TOKENS: [&str; 31] = [
    "secret",
    "secrets",
    "token",
    "apikey",
    "accesskey",
    "secretkey",
    "secretkeybase",
    "privatekey",
    "authkey",
    "appkey",
    "servicekey",
    "servicerolekey",
    "signingkey",
    "encryptionkey",
    "masterkey",
    "sharedkey",
    "sharedaccesskey",
    "accountkey",
    "storagekey",
    "licensekey",
    "sessionkey",
    "anonkey",
    "writekey",
    "integrationkey",
    "subscriptionkey",
    "hmackey",
    "credential",
    "credentials",
    "authorization",
    "connectionstring",
    "redisauth",
];

/// What follows `password` in a name that still names one.
const AFTER_PASSWORD: [&str; 11] = [
    "confirmation",
    "confirm",
    "again",
    "repeat",
    "hash",
    "value",
    "plain",
    "plaintext",
    "text",
    "prod",
    "dev",
];

/// Words before `token` that make it the position in a list.
const POSITIONS: [&str; 9] =
    ["page", "next", "continuation", "continue", "sync", "resume", "cancel", "cancellation", "cursor"];

/// The longest member name that is looked at.
const MAX_NAME: usize = 128;

/// What the name of a member says of its value; none if nothing.
pub(crate) fn strength(name: &str) -> Option<Strength> {
    if name.len() < 3 || name.len() > MAX_NAME || !name.is_ascii() {
        return None;
    }
    if !ends_like_secret(name) {
        return None;
    }
    let mut plain = String::with_capacity(name.len());
    plain.extend(name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()));
    let without_number = plain.trim_end_matches(|last: char| last.is_ascii_digit());
    if without_number.ends_with("pwd") || without_number == "pw" {
        return Some(Pwd);
    }
    let is_pass = without_number == "pass"
        || (without_number.ends_with("pass") && name.to_ascii_lowercase().contains(['_', '-']))
        || name.ends_with("Pass");
    let after_password = ["password", "passwd", "passphrase"].iter().find_map(|word| {
        let (_, after) = without_number.rsplit_once(word)?;
        AFTER_PASSWORD.contains(&after).then_some(())
    });
    if is_pass || after_password.is_some() || PASSWORDS.iter().any(|word| without_number.ends_with(word)) {
        return Some(Password);
    }
    let found = TOKENS.iter().find(|word| without_number.ends_with(**word))?;
    let before = without_number.strip_suffix(*found).unwrap_or_default();
    (!is_position(before)).then_some(Token)
}

/// Whether a name ends with a letter that a secret's name ends with: most names are ruled out here.
fn ends_like_secret(name: &str) -> bool {
    let last = name.bytes().rev().find(u8::is_ascii_alphabetic).map(|byte| byte.to_ascii_lowercase());
    matches!(last, Some(b'd' | b'e' | b't' | b's' | b'n' | b'y' | b'l' | b'g' | b'h' | b'm' | b'w' | b'v'))
}

/// Whether the words before `token` make it the position in a list, or a part of a text.
pub(super) fn is_position(before: &str) -> bool {
    POSITIONS.iter().any(|word| before.ends_with(word))
}
