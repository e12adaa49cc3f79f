//! Token formats of vendors: a prefix, the characters that follow it, and how many.

use super::super::bytes::run_end;
use super::begins_word;

/// Characters of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alphabet {
    /// Hexadecimal digits.
    Hex,
    /// Letters and digits.
    Alnum,
    /// Letters, digits and `_`.
    Word,
    /// Base64 for URLs: letters, digits, `_` and `-`.
    Url,
    /// The same with `.`, `=`, `+`, `/`, `~`, `$` and `:`.
    Wide,
}

impl Alphabet {
    fn has(self, byte: u8) -> bool {
        match self {
            Alphabet::Hex => byte.is_ascii_hexdigit(),
            Alphabet::Alnum => byte.is_ascii_alphanumeric(),
            Alphabet::Word => byte.is_ascii_alphanumeric() || byte == b'_',
            Alphabet::Url => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Alphabet::Wide => {
                byte.is_ascii_alphanumeric()
                    || matches!(byte, b'_' | b'-' | b'.' | b'=' | b'+' | b'/' | b'~' | b'$' | b':')
            }
        }
    }
}

/// A token that its beginning tells.
#[derive(Debug)]
pub(super) struct Format {
    pub(super) prefix: &'static str,
    alphabet: Alphabet,
    /// The fewest characters after the prefix.
    min: usize,
    /// The most, where a longer run is something else.
    max: usize,
}

/// A token that its end tells: a run of characters before a marker, and what follows.
#[derive(Debug)]
pub(super) struct Suffix {
    pub(super) marker: &'static str,
    alphabet: Alphabet,
    /// Characters before the marker, exactly.
    before: usize,
    /// Characters after the marker: the fewest and the most.
    after: (usize, usize),
}

const fn token(prefix: &'static str, alphabet: Alphabet, min: usize) -> Format {
    Format { prefix, alphabet, min, max: usize::MAX }
}

/// A prefix that other words have, too: only a run of exactly this length is a token.
const fn exact(prefix: &'static str, alphabet: Alphabet, length: usize) -> Format {
    Format { prefix, alphabet, min: length, max: length }
}

use Alphabet::{Alnum, Hex, Url, Wide, Word};

/// The formats, by field. A prefix is compared with its case.
#[rustfmt::skip]
pub(super) const FORMATS: &[Format] = &[
    // Payment and commerce.
    token("sk_live_", Word, 10), token("sk_test_", Word, 10), token("sk_prod_", Word, 10),
    token("rk_live_", Word, 10), token("rk_test_", Word, 10), token("rk_prod_", Word, 10),
    token("whsec_", Wide, 16),
    token("shpat_", Word, 20), token("shpca_", Word, 20), token("shppa_", Word, 20), token("shpss_", Word, 20),
    token("sq0atp-", Url, 20), token("sq0csp-", Url, 20), token("sq0idp-", Url, 20), token("EAAA", Url, 56),
    token("access_token$production$", Wide, 20), token("access_token$sandbox$", Wide, 20),
    token("FLWSECK_TEST-", Url, 12), token("FLWSECK-", Url, 12), token("FLWSECK_", Url, 12),
    token("rzp_live_", Alnum, 12), token("rzp_test_", Alnum, 12),
    token("shippo_live_", Word, 20), token("shippo_test_", Word, 20),
    token("EZAK", Alnum, 40), token("EZTK", Alnum, 40),
    token("duffel_live_", Url, 20), token("duffel_test_", Url, 20),
    token("access-sandbox-", Url, 30), token("access-production-", Url, 30), token("access-development-", Url, 30),
    // Source code and packages.
    token("glpat-", Wide, 16), token("gldt-", Url, 16), token("glrt-", Wide, 16), token("glptt-", Url, 16),
    token("glft-", Url, 16), token("glsoat-", Url, 16), token("glagent-", Url, 16), token("gloas-", Url, 16),
    token("glimt-", Url, 16), token("glcbt-", Url, 16), token("glffct-", Url, 16), token("glwt-", Url, 16),
    token("GR1348941", Url, 16),
    token("npm_", Alnum, 30), token("pypi-AgE", Url, 30), token("rubygems_", Hex, 32), token("oy2", Alnum, 43),
    exact("cio", Alnum, 32), token("CLOJARS_", Alnum, 40), token("dckr_pat_", Url, 16), token("dckr_oat_", Url, 16),
    token("ATATT3", Wide, 40), token("ATCTT3", Wide, 40), token("ATBB", Alnum, 28), token("sgp_", Word, 30),
    token("squ_", Hex, 32), token("sqp_", Hex, 32), token("sqa_", Hex, 32), token("AKCp", Alnum, 40),
    token("bkua_", Alnum, 30), token("CCIPAT_", Word, 30), token("CCIPRJ_", Word, 30),
    token("API-", Alnum, 25),
    // Clouds and hosting.
    token("dop_v1_", Hex, 40), token("doo_v1_", Hex, 40), token("dor_v1_", Hex, 40),
    token("HRKU-", Url, 20), token("dapi", Hex, 32), token("sbp_", Word, 32), token("sb_secret_", Url, 16),
    token("pul-", Hex, 32), token("AIza", Url, 32), token("GOCSPX-", Url, 20), token("ya29.", Wide, 20),
    token("nfp_", Alnum, 30), token("vcp_", Alnum, 24), token("fo1_", Url, 30),
    token("fm1r_", Wide, 30), token("fm1a_", Wide, 30), token("fm2_", Wide, 30),
    exact("LTAI", Alnum, 20), exact("LTAI", Alnum, 16), exact("AKID", Alnum, 32), token("AQVN", Url, 34),
    token("ABSK", Wide, 60), token("bedrock-api-key-", Wide, 20), token("ABIA", Alnum, 16), token("ACCA", Alnum, 16),
    token("hvs.", Url, 20), token("hvb.", Url, 20), token("hvr.", Url, 20),
    token("dp.pt.", Alnum, 30), token("dp.st.", Wide, 30), token("dp.ct.", Alnum, 30), token("dp.sa.", Alnum, 30),
    token("dp.scim.", Alnum, 30), token("dp.audit.", Alnum, 30),
    token("pscale_tkn_", Wide, 30), token("pscale_pw_", Wide, 30), token("pscale_oauth_", Wide, 30),
    token("tskey-", Url, 20), token("tk-us-", Url, 40), token("sha256~", Url, 30), token("ops_eyJ", Wide, 40),
    token("AGE-SECRET-KEY-1", Alnum, 40), token("age-secret-key-1", Alnum, 40),
    token("ddp_", Alnum, 30), token("ddw_", Alnum, 30), token("ico-", Alnum, 32), token("rnd_", Alnum, 28),
    // Messages and mail.
    exact("SK", Hex, 32), token("SG.", Wide, 40),
    exact("key-", Hex, 32), exact("pubkey-", Hex, 32),
    token("xkeysib-", Url, 40), token("xsmtpsib-", Url, 40),
    token("xoxe.", Wide, 20), token("xoxe-", Url, 20), token("xoxs-", Url, 20), token("xoxo-", Url, 20),
    token("xwfp-", Url, 20),
    token("hooks.slack.com/services/", Wide, 20), token("hooks.slack.com/workflows/", Wide, 20),
    token("discord.com/api/webhooks/", Wide, 40), token("discordapp.com/api/webhooks/", Wide, 40),
    token("webhook.office.com/webhookb2/", Wide, 40),
    // Watching.
    token("NRAK-", Alnum, 20), token("NRII-", Url, 20), token("NRJS-", Hex, 16), token("NRRA-", Hex, 30),
    token("NRAA-", Hex, 20), token("NRSP-", Alnum, 20),
    token("glsa_", Word, 30), token("glc_", Wide, 32), token("eyJrIjoi", Wide, 40),
    token("sntrys_", Wide, 40), token("sntryu_", Hex, 40), token("dt0c01.", Wide, 40), token("dt0s16.", Wide, 40),
    token("phx_", Alnum, 32), token("essu_", Wide, 30),
    // Models.
    token("hf_", Alnum, 30), token("api_org_", Alnum, 30), token("r8_", Alnum, 30), token("gsk_", Alnum, 30),
    token("pplx-", Alnum, 30), token("xai-", Alnum, 40), token("nvapi-", Url, 40), token("tgp_v1_", Url, 30),
    token("lsv2_pt_", Word, 30), token("lsv2_sk_", Word, 30), token("pcsk_", Word, 30), token("csk-", Alnum, 40),
    token("tvly-", Url, 20), exact("fc-", Hex, 32), exact("e2b_", Hex, 40), token("bb_live_", Url, 16),
    // Work.
    token("lin_api_", Alnum, 30), token("lin_oauth_", Alnum, 30), token("ntn_", Alnum, 36),
    exact("secret_", Alnum, 43), token("figd_", Url, 30), token("figu_", Url, 30), token("sl.", Url, 120),
    token("sl.u.", Url, 80), token("PMAK-", Url, 40), token("PMAT-", Url, 20), token("CFPAT-", Url, 30),
    token("rdme_", Alnum, 40), token("tfp_", Wide, 40), token("pnu_", Alnum, 32), token("pat-na1-", Url, 30),
    token("pat-eu1-", Url, 30), token("aio_", Alnum, 28), token("fio-u-", Url, 40), token("waka_", Url, 30),
    token("nyk_", Word, 30), token("zpka_", Word, 20), token("A3-", Url, 32),
    token("sk.eyJ", Wide, 40), token("pk.eyJ", Wide, 40), token("BBFF-", Alnum, 30),
    // JSON web tokens, and what is made like them.
    token("eyJ", Wide, 40),
];

/// Tokens that something behind them tells.
pub(super) const SUFFIXES: &[Suffix] = &[
    Suffix { marker: "NRAL", alphabet: Hex, before: 36, after: (0, 0) },
    Suffix { marker: "-us", alphabet: Hex, before: 32, after: (1, 2) },
    Suffix { marker: ".atlasv1.", alphabet: Alnum, before: 14, after: (50, 80) },
    Suffix { marker: "8Q~", alphabet: Alnum, before: 3, after: (30, 36) },
    Suffix { marker: "7Q~", alphabet: Alnum, before: 3, after: (30, 36) },
];

/// The end of the token that begins with this match of a prefix.
pub(super) fn token_end(text: &str, start: usize, end: usize, format: &Format) -> Option<usize> {
    let bytes = text.as_bytes();
    // The automaton ignores case.
    if bytes.get(start..end) != Some(format.prefix.as_bytes()) || !begins_word(bytes, start) {
        return None;
    }
    let least = bytes.get(end..end.checked_add(format.min)?)?;
    if !least.iter().all(|byte| format.alphabet.has(*byte)) {
        return None;
    }
    if format.max < usize::MAX {
        let token_end = end.checked_add(format.max)?;
        let follows = bytes.get(token_end).copied();
        return (!follows.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
            .then_some(token_end);
    }
    // Words have no digits, random text nearly always has.
    if format.prefix.len() < 5 && format.alphabet != Hex && !looks_random(least) {
        return None;
    }
    Some(run_end(bytes, end, |byte| format.alphabet.has(byte)))
}

/// The token around this match of a marker.
pub(super) fn suffixed(bytes: &[u8], start: usize, end: usize, suffix: &Suffix) -> Option<(usize, usize)> {
    let begin = start.checked_sub(suffix.before)?;
    let run = bytes.get(begin..start)?;
    let is_marker = bytes.get(start..end) == Some(suffix.marker.as_bytes());
    if !is_marker || !run.iter().all(|byte| suffix.alphabet.has(*byte)) || !begins_word(bytes, begin) {
        return None;
    }
    let (least, most) = suffix.after;
    let is_tail = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(**byte, b'_' | b'-' | b'.' | b'~');
    let length = bytes.get(end..)?.iter().take(most + 1).take_while(is_tail).count();
    (least..=most).contains(&length).then_some((begin, end + length))
}

/// The token of a client of Telegram's interface for programs: eight to ten digits, a colon, and 35 characters.
pub(super) fn telegram_bot(bytes: &[u8], start: usize, end: usize) -> Option<(usize, usize)> {
    let digits = bytes.get(..start)?.iter().rev().take(11).take_while(|byte| byte.is_ascii_digit()).count();
    let tail = bytes.get(end..end.checked_add(33)?)?;
    let is_token = (8..=10).contains(&digits) && tail.iter().all(|byte| Url.has(*byte));
    is_token.then_some((start - digits, end + 33))
}

/// Whether a run has a digit, or both cases.
fn looks_random(run: &[u8]) -> bool {
    let has = |class: fn(&u8) -> bool| run.iter().any(class);
    has(u8::is_ascii_digit) || (has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase))
}
