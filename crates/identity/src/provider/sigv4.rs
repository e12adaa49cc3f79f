//! AWS signature version 4 of a `POST` with a form.

use hmac::{Hmac, KeyInit, Mac};
use proctor_core::hex;
use proctor_core::time::Timestamp;
use proctor_proof::secret::Secret;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// Long-lived or temporary keys that a request is signed with.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    pub(super) id: Secret,
    pub(super) secret: Secret,
    pub(super) session_token: Option<Secret>,
}

/// Request to be signed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signed<'a> {
    pub(super) method: &'a str,
    pub(super) host: &'a str,
    /// Path, escaped as it is sent.
    pub(super) path: &'a str,
    /// Query, sorted and escaped as it is sent.
    pub(super) query: &'a str,
    pub(super) content_type: &'a str,
    pub(super) body: &'a str,
    pub(super) region: &'a str,
    pub(super) service: &'a str,
    pub(super) now: Timestamp,
}

/// `YYYYMMDDTHHMMSSZ`.
pub(super) fn amz_date(now: Timestamp) -> String {
    let text = now.to_string();
    let seconds = text.split('.').next().unwrap_or_default();
    let mut date: String = seconds.chars().filter(|it| it.is_ascii_digit() || *it == 'T').collect();
    date.push('Z');
    date
}

/// Value of `Authorization`. The headers `content-type`, `host`, `x-amz-date` and, with temporary keys, `x-amz-security-token` are signed.
pub(super) fn authorization(request: &Signed<'_>, keys: &Keys) -> Secret {
    let date = amz_date(request.now);
    let day = date.get(..8).unwrap_or_default();
    let mut headers = Zeroizing::new(format!(
        "content-type:{}\nhost:{}\nx-amz-date:{date}\n",
        request.content_type, request.host
    ));
    let mut names = "content-type;host;x-amz-date".to_owned();
    if let Some(token) = &keys.session_token {
        headers.push_str(&format!("x-amz-security-token:{}\n", token.expose()));
        names.push_str(";x-amz-security-token");
    }
    let canonical = Zeroizing::new(format!(
        "{}\n{}\n{}\n{}\n{names}\n{}",
        request.method,
        request.path,
        request.query,
        *headers,
        digest(request.body.as_bytes())
    ));
    let scope = format!("{day}/{}/{}/aws4_request", request.region, request.service);
    let to_sign = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", digest(canonical.as_bytes()));
    let first = Zeroizing::new(format!("AWS4{}", keys.secret.expose()));
    let mut key = mac(first.as_bytes(), day.as_bytes());
    for part in [request.region, request.service, "aws4_request"] {
        key = mac(&key[..], part.as_bytes());
    }
    let signature = hex::encode(mac(&key[..], to_sign.as_bytes()));
    Secret::new(format!(
        "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
        keys.id.expose()
    ))
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[expect(clippy::expect_used, reason = "an HMAC takes keys of every length")]
fn mac(key: &[u8], message: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("an HMAC takes keys of every length");
    mac.update(message);
    Zeroizing::new(mac.finalize().into_bytes().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fdemo\
                        &RoleSessionName=agentcli-session&DurationSeconds=3600";

    fn signed(service: &'static str, region: &'static str, host: &'static str) -> Signed<'static> {
        Signed {
            method: "POST",
            host,
            path: "/",
            query: "",
            content_type: "application/x-www-form-urlencoded; charset=utf-8",
            body: BODY,
            region,
            service,
            now: Timestamp::parse("2015-08-30T12:36:00Z").unwrap(),
        }
    }

    fn keys(session_token: Option<&str>) -> Keys {
        Keys {
            id: Secret::new("AKIDEXAMPLE"),
            secret: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
            session_token: session_token.map(Secret::new),
        }
    }

    #[test]
    fn the_vendors_published_example_is_signed_alike() {
        let request = Signed {
            method: "GET",
            query: "Action=ListUsers&Version=2010-05-08",
            body: "",
            ..signed("iam", "us-east-1", "iam.amazonaws.com")
        };
        assert_eq!(
            authorization(&request, &keys(None)).expose(),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, \
             SignedHeaders=content-type;host;x-amz-date, \
             Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
        );
    }

    #[test]
    fn requests_to_sts_are_signed_as_botocore_signs_them() {
        let request = signed("sts", "us-east-1", "sts.amazonaws.com");
        let value = authorization(&request, &keys(None));
        assert!(
            value.expose().ends_with("=0bd7c37c0129b7bf21677ba898f1427b723d5f8dabebca16289f8d5ed6c7e03e")
        );

        let request = signed("sts", "eu-central-1", "sts.eu-central-1.amazonaws.com");
        let value = authorization(&request, &keys(Some("FQoGZXIvYXdzEXAMPLE//token+==")));
        assert!(value.expose().contains("SignedHeaders=content-type;host;x-amz-date;x-amz-security-token,"));
        assert!(
            value.expose().ends_with("=388a965c7d851d4a9681648253423ec8e10aeef097cd43ef05dd8866295cf64f")
        );
    }
}
