//! The walk over arguments: every text is a path, a host, a command or a patch by its tool and its name, unless it is known to be content.

use proctor_core::json::Json;

use super::names::{Role, is_known, role};
use super::programs::is_program;
use super::{Gatherer, push_new, quote};
use crate::path::absolute;
use crate::tool::ToolClass;
use crate::{UNREADABLE_HOST, patch, url};

/// Deepest nesting of arguments, texts that hold JSON included.
const MAX_NESTING: usize = 32;
/// Most directories that arguments name as the start of others.
const MAX_BASES: usize = 8;

impl Gatherer<'_> {
    /// Notes the directories that relative paths may start from: they hold for what stands before them, too.
    pub(super) fn find_bases(&mut self, value: &Json, depth: usize) {
        let Json::Object(members) = value else { return };
        for (name, member) in members {
            match member {
                Json::String(text) if role(self.class, name) == Role::Base && !text.is_empty() => {
                    if self.bases.len() >= MAX_BASES {
                        self.unknown("too many directories in the arguments");
                        return;
                    }
                    let base = absolute(text, &self.facts.cwd);
                    if !self.is_long(&base) {
                        push_new(&mut self.bases, base);
                    }
                }
                Json::Object(_) if depth < MAX_NESTING => self.find_bases(member, depth + 1),
                _ => {}
            }
        }
    }

    /// Reads a value under a name; `inherited` is the role of what it is in, for names that say nothing.
    pub(super) fn walk(&mut self, name: &str, value: &Json, inherited: Option<Role>, depth: usize) {
        if depth > MAX_NESTING {
            self.unknown("arguments nested too deep to search");
            return;
        }
        let own = role(self.class, name);
        let says_nothing = matches!(own, Role::Other) || (name.is_empty() && own == Role::Command);
        let role = if says_nothing { inherited.unwrap_or(own) } else { own };
        match value {
            Json::String(text) if role == Role::Environment => self.environment_text(text, depth),
            Json::String(text) => self.leaf(role, text, depth),
            Json::Array(items) if matches!(role, Role::Command | Role::Words) => {
                self.argument_vector(items, depth);
            }
            Json::Array(items) if role == Role::Environment => self.environment_list(items),
            Json::Array(items) => {
                for item in items {
                    self.walk(name, item, Some(role), depth + 1);
                }
            }
            Json::Object(members) if role == Role::Environment => self.environment(members),
            Json::Object(members) => self.members(members, role, depth),
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
    }

    fn members(&mut self, members: &[(String, Json)], inherited: Role, depth: usize) {
        let with_words = self.command_with_words(members);
        let takes_program = matches!(self.class, ToolClass::Shell | ToolClass::Code);
        let passed_on = match inherited {
            Role::Path
            | Role::Output
            | Role::Source
            | Role::Url
            | Role::Host
            | Role::Command
            | Role::Patch
            | Role::Headers => Some(inherited),
            Role::Words | Role::Base | Role::Glob | Role::Environment | Role::Content | Role::Other => None,
        };
        for (name, member) in members {
            if with_words && matches!(role(self.class, name), Role::Words) {
                continue;
            }
            if takes_program && is_program(name) {
                // Recorded with the words beside it.
                continue;
            }
            if inherited == Role::Headers {
                if let (true, Some(host)) = (name.eq_ignore_ascii_case("host"), member.as_str()) {
                    self.add_sent_host(host);
                }
                continue;
            }
            if self.is_path_key(name, inherited) {
                // A map from paths to what they hold.
                let writes = self.class.writes() || self.writes_by_kind();
                self.add_argument_path(name, writes);
                match member {
                    Json::String(text) if !looks_like_path(text) => {}
                    _ => self.walk("", member, None, depth + 1),
                }
                continue;
            }
            self.walk(name, member, passed_on, depth + 1);
        }
    }

    /// Whether the key of an object is a path rather than the name of an argument.
    fn is_path_key(&self, name: &str, inherited: Role) -> bool {
        let is_in_paths = matches!(inherited, Role::Path | Role::Output);
        let may_be = is_in_paths || self.class.is_file();
        may_be && !is_known(self.class, name) && (is_in_paths || looks_like_path(name))
    }

    fn leaf(&mut self, role: Role, text: &str, depth: usize) {
        if text.is_empty() {
            return;
        }
        match self.class {
            ToolClass::Shell => self.shell_leaf(role, text),
            ToolClass::Code => self.code_leaf(role, text),
            ToolClass::Network => self.network_leaf(role, text, depth),
            class if class.is_file() => self.file_leaf(role, text, depth),
            _ => self.other_leaf(role, text, depth),
        }
    }

    fn shell_leaf(&mut self, role: Role, text: &str) {
        match role {
            Role::Command | Role::Words => {
                self.note_command(text);
                self.add_command(text);
            }
            Role::Path | Role::Base => self.add_argument_path(text, false),
            Role::Url => self.add_url(text),
            Role::Host => self.add_sent_host(text),
            _ => {}
        }
    }

    fn code_leaf(&mut self, role: Role, text: &str) {
        match role {
            Role::Path | Role::Base => self.add_argument_path(text, false),
            Role::Command | Role::Words => {
                self.note_command(text);
                let line = format!("{} {}", self.interpreter(), quote(text));
                self.add_command(&line);
                push_new(&mut self.facts.opaque, line);
            }
            Role::Url => self.add_url(text),
            Role::Host => self.add_sent_host(text),
            _ => {}
        }
    }

    /// The interpreter that a tool for code runs, with its option for code.
    fn interpreter(&self) -> &'static str {
        let name = self.facts.name.to_ascii_lowercase();
        let of = |part: &str| name.contains(part);
        if of("node") || of("js") || of("javascript") {
            "node -e"
        } else if of("ruby") {
            "ruby -e"
        } else if of("perl") {
            "perl -e"
        } else if of("powershell") || of("pwsh") {
            "pwsh -c"
        } else {
            "python3 -c"
        }
    }

    fn file_leaf(&mut self, role: Role, text: &str, depth: usize) {
        let is_patch = self.class == ToolClass::Patch;
        match role {
            Role::Content | Role::Environment | Role::Headers => {}
            Role::Patch => self.add_patch(text),
            _ if is_patch && (text.contains(['\n', '\r']) || patch::looks_like(text)) => self.add_patch(text),
            // `command` of an editor is one of its verbs.
            Role::Command if is_verb(text) => self.note_verb(text),
            Role::Command => {
                self.note_command(text);
                self.add_command(text);
            }
            Role::Host => self.add_sent_host(text),
            Role::Glob => self.add_glob(text),
            _ if is_remote(text) => self.add_url(text),
            _ if self.walks_json(text, depth) => {}
            Role::Source | Role::Base => self.add_argument_path(text, false),
            _ => {
                let writes = self.class.writes() || self.writes_by_kind();
                self.add_argument_path(text, writes && !self.only_views);
            }
        }
    }

    fn network_leaf(&mut self, role: Role, text: &str, depth: usize) {
        match role {
            Role::Command => {
                self.note_command(text);
                self.add_command(text);
            }
            Role::Host => self.add_sent_host(text),
            Role::Content | Role::Patch | Role::Glob | Role::Environment | Role::Headers => {
                // A tool that connects may follow any URL that it is told of.
                if text.contains("://") {
                    for host in url::find_hosts(text) {
                        self.add_host(host);
                    }
                }
            }
            _ if self.walks_json(text, depth) => {}
            Role::Output if !is_remote(text) => self.add_argument_path(text, true),
            Role::Path | Role::Source | Role::Base if text.starts_with(['/', '~', '.']) => {
                self.add_argument_path(text, false);
            }
            Role::Other if !text.contains("://") && text.trim().contains(char::is_whitespace) => {
                // A sentence is no address; one that a tool took for a URL would have to be read as such.
                for host in url::find_hosts(text) {
                    self.add_host(host);
                }
            }
            _ => {
                self.note_url(text);
                self.add_url(text);
            }
        }
    }

    fn other_leaf(&mut self, role: Role, text: &str, depth: usize) {
        match role {
            Role::Command => {
                self.note_command(text);
                self.add_command(text);
            }
            Role::Patch => self.add_patch(text),
            _ if patch::looks_like(text) => self.add_patch(text),
            Role::Url => {
                self.note_url(text);
                self.add_url(text);
            }
            Role::Host => self.add_sent_host(text),
            Role::Path | Role::Output | Role::Source | Role::Base | Role::Glob => {
                if is_remote(text) {
                    self.add_url(text);
                } else {
                    self.add_argument_path(text, self.writes_by_kind());
                }
            }
            Role::Words | Role::Environment | Role::Headers | Role::Content | Role::Other => {
                if text.contains("://") && !text.contains(char::is_whitespace) {
                    self.add_url(text);
                } else if role != Role::Content && !self.walks_json(text, depth) && is_absolute_word(text) {
                    self.add_argument_path(text, self.writes_by_kind());
                }
            }
        }
    }

    /// Reads a text that is an object or a list in JSON; false if it is none.
    fn walks_json(&mut self, text: &str, depth: usize) -> bool {
        if !text.trim_start().starts_with(['{', '[']) {
            return false;
        }
        match Json::parse(text.trim().as_bytes()) {
            Ok(value @ (Json::Object(_) | Json::Array(_))) => {
                self.find_bases(&value, depth + 1);
                self.walk("", &value, None, depth + 1);
                true
            }
            _ => false,
        }
    }

    /// A command as a list of words: quoted back into one line, so that one parser judges both forms.
    fn argument_vector(&mut self, items: &[Json], depth: usize) {
        let words: Vec<String> = items.iter().filter_map(Json::as_str).map(quote).collect();
        if words.len() < items.len() {
            self.unknown("command words that are not strings");
            let rest = items.iter().filter(|item| matches!(item, Json::Object(_) | Json::Array(_)));
            rest.for_each(|item| self.walk("", item, Some(Role::Command), depth + 1));
        }
        let line = words.join(" ");
        self.note_command(&items.iter().filter_map(Json::as_str).collect::<Vec<_>>().join(" "));
        self.add_command(&line);
        // `["ls -l", "rm x"]` is a list of lines rather than of words.
        for line in items.iter().filter_map(Json::as_str).filter(|line| line.contains(' ')) {
            self.add_command(line);
        }
    }

    pub(super) fn environment(&mut self, members: &[(String, Json)]) {
        for (name, value) in members {
            match value {
                Json::String(text) => self.add_assignment(name, text),
                Json::Number(_) | Json::Bool(_) => self.add_assignment(name, &value.to_string()),
                _ => self.add_assignment(name, ""),
            }
        }
    }

    /// `["NAME=value"]`, or `[{"name": …, "value": …}]`.
    fn environment_list(&mut self, items: &[Json]) {
        for item in items {
            let member = |names: &[&str]| {
                names
                    .iter()
                    .find_map(|name| item.get(name))
                    .and_then(Json::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            match item.as_str() {
                Some(text) => {
                    let (name, value) = text.split_once('=').unwrap_or((text, ""));
                    self.add_assignment(name, value);
                }
                None => self.add_assignment(&member(&["name", "key"]), &member(&["value"])),
            }
        }
    }

    pub(super) fn add_assignment(&mut self, name: &str, value: &str) {
        push_new(&mut self.facts.assignments, format!("{name}={value}"));
        // Programs read and run the files that variables name.
        for part in value.split([':', ' ', '=']).filter(|part| is_absolute_word(part)) {
            self.add_argument_path(part, false);
        }
    }

    pub(super) fn note_command(&mut self, text: &str) {
        if self.facts.command.is_empty() {
            text.clone_into(&mut self.facts.command);
        }
    }

    fn note_url(&mut self, text: &str) {
        if self.facts.url.is_empty() {
            text.clone_into(&mut self.facts.url);
        }
    }

    /// An editor's verb: one that only shows changes nothing.
    fn note_verb(&mut self, verb: &str) {
        self.only_views = matches!(verb, "view" | "read" | "show" | "list" | "find" | "search");
    }

    /// A host as it was sent. What could hide another one in it is not a host.
    pub(super) fn add_sent_host(&mut self, sent: &str) {
        if sent.is_empty() {
            return;
        }
        if sent.contains("://") {
            self.add_url(sent);
            return;
        }
        if sent.contains(['/', '\\', '#', '?', '@'])
            || sent.contains(|c: char| c.is_whitespace() || c.is_control())
        {
            self.hidden_host(UNREADABLE_HOST);
        }
        match url::parse(&format!("host://{sent}")).filter(|parts| url::is_host(&parts.host)) {
            Some(parts) => self.add_host(parts.host),
            None => self.hidden_host(UNREADABLE_HOST),
        }
    }
}

/// Whether a text names something on another host. `file:` names what is on this one.
fn is_remote(text: &str) -> bool {
    text.contains("://") && !text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"))
}

fn looks_like_path(text: &str) -> bool {
    !text.contains(['\n', '\r']) && (text.starts_with(['~', '.']) || text.contains(['/', '\\']))
}

/// Whether a text is one word that can only be a path from the root or a home.
fn is_absolute_word(text: &str) -> bool {
    (text.starts_with("~/") || (text.starts_with('/') && text.len() > 1))
        && !text.contains(char::is_whitespace)
}

fn is_verb(text: &str) -> bool {
    text.len() <= 32 && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}
