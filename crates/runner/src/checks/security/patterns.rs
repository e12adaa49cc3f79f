//! The patterns. One finding for each pattern and text.

use std::sync::LazyLock;

use regex::Regex;

use super::validate::Validation;
use super::{Checker, Language, Severity};

/// A pattern.
pub(super) struct Pattern {
    pub(super) subtype: &'static str,
    pub(super) severity: Severity,
    pub(super) message: &'static str,
    pub(super) regex: &'static str,
    pub(super) language: Option<Language>,
    pub(super) validation: Validation,
}

/// A pattern, compiled.
pub(super) struct Compiled {
    pub(super) pattern: &'static Pattern,
    pub(super) regex: Regex,
}

impl Pattern {
    /// The checker that the subtype belongs to.
    pub(super) fn checker(&self) -> Checker {
        Checker::ALL
            .into_iter()
            .find(|checker| checker.subtypes().contains(&self.subtype))
            .unwrap_or(Checker::CodeSafety)
    }
}

/// All patterns, compiled once.
pub(super) fn compiled() -> &'static [Compiled] {
    static COMPILED: LazyLock<Vec<Compiled>> = LazyLock::new(|| {
        let tables = [PERSONAL, INJECTION, CODE, SECRETS];
        let compile =
            |pattern: &'static Pattern| Some(Compiled { pattern, regex: Regex::new(pattern.regex).ok()? });
        tables.into_iter().flatten().filter_map(compile).collect()
    });
    &COMPILED
}

/// Number of patterns as written; a test compares it with [`compiled`].
#[cfg(test)]
pub(super) fn written() -> usize {
    [PERSONAL, INJECTION, CODE, SECRETS].iter().map(|table| table.len()).sum()
}

const fn pattern(
    subtype: &'static str,
    severity: Severity,
    message: &'static str,
    regex: &'static str,
) -> Pattern {
    Pattern { subtype, severity, message, regex, language: None, validation: Validation::None }
}

const fn checked(
    subtype: &'static str,
    severity: Severity,
    message: &'static str,
    validation: Validation,
    regex: &'static str,
) -> Pattern {
    Pattern { subtype, severity, message, regex, language: None, validation }
}

const fn code(
    language: Language,
    subtype: &'static str,
    severity: Severity,
    message: &'static str,
    regex: &'static str,
) -> Pattern {
    Pattern { subtype, severity, message, regex, language: Some(language), validation: Validation::None }
}

use Language::{Bash, Javascript, Python};
use Severity::{Critical, High, Low, Medium};

const PERSONAL: &[Pattern] = &[
    pattern(
        "email",
        Medium,
        "an e-mail address",
        r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b",
    ),
    pattern(
        "phone",
        Medium,
        "a telephone number",
        r"(?:\+?1[-. ])?(?:\(\d{3}\) ?|\b\d{3}[-. ])\d{3}[-. ]\d{4}\b",
    ),
    checked("ssn", Critical, "a social security number", Validation::Ssn, r"\b\d{3}-\d{2}-\d{4}\b"),
    checked("credit_card", Critical, "a payment card number", Validation::Luhn, r"\b\d(?:[ -]?\d){12,18}\b"),
    pattern(
        "api_key",
        High,
        "a key of a service",
        r"\b(?:sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|xox[abprs]-[A-Za-z0-9-]{10,}|AIza[A-Za-z0-9_-]{30,}|hf_[A-Za-z0-9]{20,}|[rs]k_(?:live|test)_[A-Za-z0-9]{20,})",
    ),
    checked(
        "api_key",
        High,
        "a value named like a key",
        Validation::NotPlaceholder,
        r#"(?i)\bapi[_-]?key["']?\s*[:=]\s*["']?[A-Za-z0-9_-]{20,}"#,
    ),
];

const INJECTION: &[Pattern] = &[
    pattern(
        "injection",
        High,
        "an order to disregard instructions",
        r"(?i)\b(?:ignore|disregard|forget|override|skip)\s+(?:all\s+|any\s+)?(?:of\s+)?(?:the\s+|your\s+|my\s+)?(?:previous|prior|earlier|above|preceding|former|initial|original|system)\s+(?:instructions?|prompts?|rules?|directions?|guidelines?|messages?|context)",
    ),
    pattern(
        "injection",
        High,
        "instructions that claim to be new",
        r"(?i)\b(?:new|updated|revised|real|actual)\s+(?:system\s+)?(?:instructions?|orders?)\s*(?::|are\b|follow\b)",
    ),
    pattern(
        "injection",
        Medium,
        "a request for the system prompt",
        r"(?i)\b(?:show|reveal|print|repeat|output|display|tell\s+me|what\s+(?:is|are))\s+(?:me\s+)?(?:all\s+)?(?:of\s+)?(?:your|the)\s+(?:system|initial|hidden|original|secret)\s+(?:prompt|instructions?|message|rules)",
    ),
    pattern(
        "injection",
        High,
        "delimiters of a chat format",
        r"(?i)<\|(?:im_start|im_end|system|user|assistant|endoftext)\|>|\[/?INST\]|<</?SYS>>|^\s*###\s*(?:system|instruction)\s*:",
    ),
    pattern(
        "injection",
        Medium,
        "a code fence that plays a role",
        r"(?im)^```\s*(?:system|instructions?|prompt)\s*$",
    ),
    pattern(
        "jailbreak",
        High,
        "a persona without limits",
        r"(?i)\b(?:do\s+anything\s+now|you\s+are\s+(?:now\s+)?DAN\b|act\s+as\s+DAN\b|no\s+longer\s+bound\s+by|without\s+any\s+(?:restrictions?|limits?|filters?|guidelines?))",
    ),
    pattern(
        "jailbreak",
        Medium,
        "a hypothetical frame for a forbidden request",
        r"(?i)\b(?:hypothetically|in\s+a\s+fictional\s+world|for\s+a\s+novel)\b.{0,80}\b(?:no\s+rules|no\s+laws|without\s+restrictions?|anything\s+is\s+allowed|bypass)",
    ),
    pattern(
        "jailbreak",
        High,
        "a mode that lifts limits",
        r"(?i)\b(?:developer|debug|god|admin|unrestricted|jailbreak)\s+mode\s+(?:is\s+)?(?:enabled|activated|on|engaged)\b|\benable\s+(?:developer|god|unrestricted|jailbreak)\s+mode",
    ),
    pattern(
        "jailbreak",
        Medium,
        "a reversal of meaning",
        r"(?i)\b(?:opposite\s+day|opposite\s+mode|answer\s+with\s+the\s+opposite\s+of)",
    ),
    pattern(
        "jailbreak",
        Medium,
        "emotional pressure",
        r"(?i)\b(?:my\s+(?:late\s+)?grand(?:mother|ma|father|pa)\s+used\s+to|i\s+will\s+(?:die|lose\s+my\s+job)\s+(?:if\s+you|unless\s+you))",
    ),
    pattern(
        "role_manipulation",
        High,
        "a change of identity",
        r"(?i)\b(?:you\s+are\s+(?:now|no\s+longer)|from\s+now\s+on,?\s+you\s+(?:are|will\s+be|act\s+as)|pretend\s+(?:to\s+be|that\s+you\s+are))\s+(?:an?\s+|the\s+|my\s+)?[a-z]",
    ),
    pattern(
        "role_manipulation",
        High,
        "a harmful persona",
        r"(?i)\b(?:act|behave|respond|speak)\s+(?:as|like)\s+(?:an?\s+)?(?:hacker|criminal|terrorist|evil|malicious|unethical|amoral)",
    ),
    pattern(
        "role_manipulation",
        High,
        "a claim of authority",
        r"(?i)\bi\s+am\s+(?:your|the)\s+(?:developer|creator|administrator|admin|owner|operator)\b|\bas\s+your\s+(?:developer|creator|administrator|owner)\b",
    ),
    pattern(
        "role_manipulation",
        Medium,
        "a swap of roles",
        r"(?i)\b(?:switch|swap|reverse)\s+(?:our\s+)?roles\b|\bi\s+(?:am|will\s+be)\s+the\s+(?:assistant|ai|model)\b",
    ),
    pattern(
        "role_manipulation",
        Low,
        "an order about the form of the answer",
        r"(?i)\b(?:start|begin)\s+(?:your|the)\s+(?:answer|response|reply)\s+with\s+[\x22']|\brespond\s+only\s+with\s+[\x22']",
    ),
];

const CODE: &[Pattern] = &[
    code(
        Python,
        "dangerous_import",
        Medium,
        "a module that starts processes",
        r"(?m)^\s*(?:import|from)\s+(?:subprocess|pty|multiprocessing|popen2|commands)\b",
    ),
    code(
        Python,
        "dangerous_import",
        Medium,
        "a module with access to the system",
        r"(?m)^\s*(?:import|from)\s+(?:ctypes|cffi|mmap|winreg|_winreg|msvcrt|resource|signal)\b",
    ),
    code(
        Python,
        "dangerous_import",
        High,
        "a module that executes what it reads",
        r"(?m)^\s*(?:import|from)\s+(?:pickle|cPickle|marshal|shelve|dill|jsonpickle)\b",
    ),
    code(
        Python,
        "dangerous_import",
        Low,
        "a module that loads code by name",
        r"(?m)^\s*(?:import|from)\s+(?:importlib|runpy|imp|code|codeop|pkgutil|zipimport)\b",
    ),
    code(
        Python,
        "dangerous_function",
        Critical,
        "evaluation of text as code",
        r"(?:^|[^.\w])(?:eval|exec|compile|__import__)\s*\(",
    ),
    code(
        Python,
        "dangerous_function",
        Critical,
        "a command through a shell",
        r"\bos\.(?:system|popen|exec[lv]p?e?|spawn[lv]p?e?)\s*\(|\bshell\s*=\s*True\b",
    ),
    code(
        Python,
        "dangerous_function",
        High,
        "reading of serialised objects",
        r"\b(?:pickle|cPickle|marshal|dill|shelve)\.(?:loads?|open)\s*\(|\byaml\.load\s*\((?:[^)]*Loader\s*=\s*yaml\.(?:Unsafe|Full)?Loader|[^,)]*\))",
    ),
    code(
        Python,
        "dangerous_function",
        Medium,
        "access to names at run time",
        r"(?:^|[^.\w])(?:globals|locals|vars|setattr|delattr)\s*\(",
    ),
    code(
        Python,
        "file_operation",
        High,
        "deletion of a tree",
        r"\bshutil\.(?:rmtree|move)\s*\(|\bos\.(?:removedirs|remove|unlink|rmdir)\s*\(",
    ),
    code(
        Python,
        "file_operation",
        Medium,
        "writing of files",
        r#"\bopen\s*\([^)]*,\s*["'][wax]b?\+?["']|\.write_(?:text|bytes)\s*\("#,
    ),
    code(Python, "file_operation", Medium, "a change of permissions", r"\bos\.(?:chmod|chown|lchown)\s*\("),
    code(
        Python,
        "network_operation",
        Medium,
        "a network connection",
        r"\b(?:requests|httpx|urllib\.request|aiohttp|urllib3)\.\w+|\bsocket\.(?:socket|create_connection)\s*\(",
    ),
    code(
        Python,
        "network_operation",
        Low,
        "a protocol client",
        r"(?m)^\s*(?:import|from)\s+(?:ftplib|telnetlib|smtplib|paramiko|poplib|imaplib|xmlrpc)\b",
    ),
    code(
        Javascript,
        "dangerous_import",
        Medium,
        "a module that starts processes",
        r#"(?:require\s*\(\s*|from\s+)["'](?:node:)?(?:child_process|cluster|worker_threads)["']"#,
    ),
    code(
        Javascript,
        "dangerous_import",
        Medium,
        "a module that executes code",
        r#"(?:require\s*\(\s*|from\s+)["'](?:node:)?(?:vm|vm2|repl|module)["']"#,
    ),
    code(
        Javascript,
        "dangerous_function",
        Critical,
        "evaluation of text as code",
        r#"(?:^|[^.\w])eval\s*\(|\bnew\s+Function\s*\(|\bset(?:Timeout|Interval)\s*\(\s*["'`]"#,
    ),
    code(
        Javascript,
        "dangerous_function",
        High,
        "a command through a shell",
        r"\b(?:exec|execSync|spawn|spawnSync|execFile|fork)\s*\(\s*[`\x22']",
    ),
    code(
        Javascript,
        "dangerous_function",
        High,
        "markup written without escaping",
        r"\.(?:innerHTML|outerHTML)\s*=|\bdocument\.write(?:ln)?\s*\(|\bdangerouslySetInnerHTML\b",
    ),
    code(
        Javascript,
        "dangerous_function",
        Medium,
        "a change of prototypes",
        r"__proto__|\bObject\.setPrototypeOf\s*\(",
    ),
    code(
        Javascript,
        "file_operation",
        High,
        "deletion of files",
        r"\bfs(?:\.promises)?\.(?:rm|rmSync|unlink|unlinkSync|rmdir|rmdirSync)\s*\(",
    ),
    code(
        Javascript,
        "file_operation",
        Medium,
        "writing of files",
        r"\bfs(?:\.promises)?\.(?:writeFile|writeFileSync|appendFile|appendFileSync|chmod|chmodSync|createWriteStream)\s*\(",
    ),
    code(
        Javascript,
        "network_operation",
        Medium,
        "a network connection",
        r#"(?:^|[^.\w])fetch\s*\(|\bXMLHttpRequest\b|\bnew\s+WebSocket\s*\(|\baxios\.\w+\s*\(|(?:require\s*\(\s*|from\s+)["'](?:node:)?(?:net|dgram|http|https|tls)["']"#,
    ),
    code(
        Bash,
        "dangerous_function",
        Critical,
        "deletion of everything below a root",
        r"\brm\s+(?:-[a-zA-Z]+\s+)*-[a-zA-Z]*(?:rf|fr|r)[a-zA-Z]*\s+(?:--no-preserve-root\s+)?(?:/|~|\$HOME)(?:\s|$|\*)",
    ),
    code(
        Bash,
        "dangerous_function",
        Critical,
        "a download that is executed",
        r"\b(?:curl|wget)\b[^\n|;]*\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b",
    ),
    code(
        Bash,
        "dangerous_function",
        Critical,
        "a process that multiplies",
        r":\s*\(\s*\)\s*\{\s*:\s*\|\s*:\s*&\s*\}\s*;\s*:",
    ),
    code(
        Bash,
        "dangerous_function",
        High,
        "evaluation of text as a command",
        r"(?m)^\s*eval\s+|\b(?:ba)?sh\s+-c\s+",
    ),
    code(Bash, "dangerous_function", High, "a command with other rights", r"\bsudo\s+\w|\bsu\s+-\s*c?\b"),
    code(
        Bash,
        "dangerous_function",
        High,
        "a write to a device",
        r"\bdd\s+[^\n]*\bof=/dev/|>\s*/dev/[sh]d[a-z]|\bmkfs(?:\.\w+)?\s",
    ),
    code(
        Bash,
        "file_operation",
        Medium,
        "permissions for everybody",
        r"\bchmod\s+(?:-R\s+)?(?:0?777|a\+rwx|o\+w)\b",
    ),
    code(Bash, "file_operation", High, "a write to system files", r">>?\s*/etc/|\btee\s+(?:-a\s+)?/etc/"),
    code(
        Bash,
        "file_operation",
        Medium,
        "deletion of files",
        r"\brm\s+-[a-zA-Z]*r|\bshred\s+|\btruncate\s+-s\s*0",
    ),
    code(
        Bash,
        "network_operation",
        High,
        "a shell over the network",
        r"/dev/(?:tcp|udp)/|\bn(?:c|cat)\b[^\n]*\s-[a-z]*e\b",
    ),
    code(
        Bash,
        "network_operation",
        Medium,
        "a transfer over the network",
        r"(?m)(?:^|[;&|]\s*)(?:curl|wget|scp|rsync|sftp|ftp|nc|ncat|telnet)\s",
    ),
];

const SECRETS: &[Pattern] = &[
    pattern(
        "private_key",
        Critical,
        "a private key",
        r"-----BEGIN (?:RSA |DSA |EC |OPENSSH |PGP |ENCRYPTED )?PRIVATE KEY(?: BLOCK)?-----",
    ),
    pattern(
        "jwt_token",
        High,
        "a JSON Web Token",
        r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    ),
    checked(
        "bearer_token",
        High,
        "a bearer token",
        Validation::NotPlaceholder,
        r"(?i)\bbearer\s+[A-Za-z0-9._~+/-]{20,}=*",
    ),
    checked(
        "basic_auth",
        High,
        "basic credentials",
        Validation::NotPlaceholder,
        r"(?i)\bauthorization\s*[:=]\s*basic\s+[A-Za-z0-9+/]{12,}=*",
    ),
    checked(
        "basic_auth",
        High,
        "credentials in an address",
        Validation::NotPlaceholder,
        r"\bhttps?://[^\s/:@]+:[^\s/:@]{4,}@[^\s/]+",
    ),
    checked(
        "env_secret",
        High,
        "a secret of an environment file",
        Validation::NotPlaceholder,
        r#"(?m)^\s*(?:export\s+)?[A-Z][A-Z0-9_]*(?:SECRET|TOKEN|PASSWORD|PASSWD|API_KEY|PRIVATE_KEY)[A-Z0-9_]*=["']?[^\s"']{8,}"#,
    ),
    checked(
        "connection_string",
        Critical,
        "a connection string with a password",
        Validation::NotPlaceholder,
        r"\b(?:mongodb(?:\+srv)?|postgres(?:ql)?|mysql|mariadb|redis|rediss|amqps?|mssql)://[^\s:/@]*:[^\s/@]+@[^\s]+",
    ),
    checked(
        "hardcoded_secret",
        High,
        "a secret written into code",
        Validation::NotPlaceholder,
        r#"(?i)\b(?:password|passwd|pwd|secret|token|client_secret|access_key)["']?\s*[:=]\s*["'][^"'\s]{8,}["']"#,
    ),
    pattern("aws_credential", Critical, "an AWS access key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    checked(
        "aws_credential",
        Critical,
        "an AWS secret key",
        Validation::NotPlaceholder,
        r#"(?i)\baws_secret_access_key["']?\s*[:=]\s*["']?[A-Za-z0-9/+]{40}\b"#,
    ),
    pattern("certificate", Medium, "a certificate", r"-----BEGIN CERTIFICATE-----"),
];
