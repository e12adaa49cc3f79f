//! Passes 1 and 5: secrets that start with a known literal.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::bytes::{Next, first_terminator};
use super::{Finding, FindingKind};

/// Kind of finding that a literal starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Prefix(FindingKind),
    PemHeader(FindingKind),
    /// Reported by the last pass, after everything else.
    AccountKey,
}

use FindingKind as K;
use Start::{PemHeader, Prefix};

/// Literals and their kinds. Where two literals start at the same offset, the first in this list wins.
const LITERALS: [(&str, Start); 29] = [
    (concat!("sk-", "ant-"), Prefix(K::AnthropicKey)),
    ("sk-", Prefix(K::OpenAiKey)),
    ("AKIA", Prefix(K::AwsAccessKey)),
    ("ASIA", Prefix(K::AwsAccessKey)),
    (r#""type": "service_account""#, Prefix(K::GcpServiceAccount)),
    (r#""type":"service_account""#, Prefix(K::GcpServiceAccount)),
    (r#""type" : "service_account""#, Prefix(K::GcpServiceAccount)),
    (r#""type" :"service_account""#, Prefix(K::GcpServiceAccount)),
    ("DefaultEndpointsProtocol=", Prefix(K::AzureConnectionString)),
    ("ghp_", Prefix(K::GitHubPat)),
    ("github_pat_", Prefix(K::GitHubPat)),
    ("ghs_", Prefix(K::GitHubAppToken)),
    ("gho_", Prefix(K::GitHubOAuthToken)),
    ("ghu_", Prefix(K::GitHubUserToken)),
    ("ghr_", Prefix(K::GitHubRefreshToken)),
    ("xoxb-", Prefix(K::SlackBotToken)),
    ("xoxp-", Prefix(K::SlackUserToken)),
    ("xoxa-", Prefix(K::SlackOAuthToken)),
    ("xapp-", Prefix(K::SlackAppToken)),
    ("xoxr-", Prefix(K::SlackRefreshToken)),
    ("postgres://", Prefix(K::PostgresUrl)),
    ("mysql://", Prefix(K::MysqlUrl)),
    ("mongodb://", Prefix(K::MongodbUrl)),
    (concat!("-----BEGIN RSA ", "PRIVATE KEY-----"), PemHeader(K::RsaPrivateKey)),
    (concat!("-----BEGIN EC ", "PRIVATE KEY-----"), PemHeader(K::EcPrivateKey)),
    (concat!("-----BEGIN OPENSSH ", "PRIVATE KEY-----"), PemHeader(K::OpensshPrivateKey)),
    (concat!("-----BEGIN ", "PRIVATE KEY-----"), PemHeader(K::PrivateKey)),
    (concat!("-----BEGIN PGP ", "PRIVATE KEY BLOCK-----"), PemHeader(K::PgpPrivateKey)),
    (ACCOUNT_KEY, Start::AccountKey),
];

const ACCOUNT_KEY: &str = "AccountKey=";

static AUTOMATON: LazyLock<AhoCorasick> = LazyLock::new(|| {
    #[expect(
        clippy::expect_used,
        reason = "the literals are constant and few; every test of the scanner builds them"
    )]
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostFirst)
        .kind(Some(AhoCorasickKind::DFA))
        .build(LITERALS.iter().map(|(literal, _)| literal))
        .expect("the automaton of the constant literals")
});

/// Finds every literal; returns the account keys, which are reported after all other passes.
pub(super) fn find(text: &str, findings: &mut Vec<Finding>) -> Vec<Finding> {
    let mut account_keys = Vec::new();
    let mut pem_headers = Vec::new();
    let mut terminators = Next::new(text, first_terminator);
    for found in AUTOMATON.find_iter(text) {
        let Some(&(_, start)) = LITERALS.get(found.pattern().as_usize()) else { continue };
        let end = terminators.at_or_after(found.end()).unwrap_or(text.len());
        let offset = found.start();
        match start {
            Start::Prefix(kind) => {
                findings.push(Finding { kind, offset, end });
                if kind == K::AwsAccessKey {
                    account_keys.extend(account_key_hidden_by(text, found.end(), &mut terminators));
                }
            }
            Start::PemHeader(kind) => {
                pem_headers.push(PemHeaderFound { finding: findings.len(), body: found.end() });
                findings.push(Finding { kind, offset, end });
            }
            Start::AccountKey => {
                account_keys.push(Finding { kind: K::AzureConnectionString, offset, end });
            }
        }
    }
    if !pem_headers.is_empty() {
        extend_over_short_tails(text, &pem_headers, findings);
    }
    account_keys
}

/// The automaton's matches do not overlap, so a literal that ends in the marker's first letter hides the
/// marker. Only the two AWS prefixes do.
fn account_key_hidden_by<F: Fn(&str) -> Option<usize>>(
    text: &str,
    literal_end: usize,
    terminators: &mut Next<'_, F>,
) -> Option<Finding> {
    let offset = literal_end.checked_sub(1)?;
    let marker_end = offset + ACCOUNT_KEY.len();
    let candidate = text.as_bytes().get(offset..marker_end)?;
    candidate.eq_ignore_ascii_case(ACCOUNT_KEY.as_bytes()).then(|| Finding {
        kind: K::AzureConnectionString,
        offset,
        end: terminators.at_or_after(marker_end).unwrap_or(text.len()),
    })
}

/// A PEM header: the index of its finding, and where its body starts.
struct PemHeaderFound {
    finding: usize,
    body: usize,
}

const PEM_END: &[u8] = b"-----END";
const PEM_DASHES: &[u8] = b"-----";
/// A body line this long is left to the entropy pass; a shorter last line would slip through it.
const LONG_RUN: usize = 20;

/// A header's own span ends at its line. Where the body's last line is too short for the entropy pass the
/// span is drawn over the whole block.
fn extend_over_short_tails(text: &str, headers: &[PemHeaderFound], findings: &mut [Finding]) {
    let bytes = text.as_bytes();
    let mut next_end = Next::new(text, |rest| {
        rest.as_bytes().windows(PEM_END.len()).position(|window| window.eq_ignore_ascii_case(PEM_END))
    });
    let ends: Vec<Option<usize>> = headers.iter().map(|header| next_end.at_or_after(header.body)).collect();

    // Backwards, so that headers which share one end line share the walk over what lies between. No run
    // reaches over a header, because headers begin and end in dashes.
    let mut shared: Option<PemBody> = None;
    for (header, end) in headers.iter().zip(ends).rev() {
        let Some(end) = end else { continue };
        let mut body = shared.take().filter(|body| body.end == end).unwrap_or_else(|| PemBody {
            end,
            seen_from: end,
            longest: 0,
            last: 0,
            closed: pem_close(bytes, end),
        });
        body.take_in(bytes, header.body);
        if body.longest >= LONG_RUN
            && (1..LONG_RUN).contains(&body.last)
            && let Some(finding) = findings.get_mut(header.finding)
        {
            finding.end = finding.end.max(body.closed);
        }
        shared = Some(body);
    }
}

/// Body between a PEM header and its end line.
struct PemBody {
    end: usize,
    seen_from: usize,
    longest: usize,
    last: usize,
    closed: usize,
}

impl PemBody {
    fn take_in(&mut self, bytes: &[u8], from: usize) {
        let segment = bytes.get(from..self.seen_from).unwrap_or_default();
        let mut last_here = 0;
        for run in segment.split(|&byte| !is_pem_body(byte)).filter(|run| !run.is_empty()) {
            self.longest = self.longest.max(run.len());
            last_here = run.len();
        }
        if self.last == 0 {
            self.last = last_here;
        }
        self.seen_from = from;
    }
}

fn is_pem_body(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/'
}

/// The position after the closing dashes of an end line, or the line's own end when it has none.
fn pem_close(bytes: &[u8], end_line: usize) -> usize {
    let after_marker = end_line + PEM_END.len();
    let rest = bytes.get(after_marker..).unwrap_or_default();
    let line = rest.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let length = line
        .windows(PEM_DASHES.len())
        .position(|window| window == PEM_DASHES)
        .map_or(line.trim_ascii_end().len(), |dashes| dashes + PEM_DASHES.len());
    after_marker + length
}
