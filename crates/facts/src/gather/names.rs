//! Roles of argument names: what a value is, judged by the name that it stands under.

use crate::tool::{ToolClass, squash};

/// Role of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A command line, or its words.
    Command,
    /// Further words of a command.
    Words,
    /// A patch.
    Patch,
    /// A URL, perhaps without its scheme.
    Url,
    /// A host.
    Host,
    /// A path.
    Path,
    /// A path that is the target of a transfer.
    Output,
    /// A path that is only read, whatever the tool does with others.
    Source,
    /// A directory that other paths may start from.
    Base,
    /// A pattern of file names.
    Glob,
    /// Variables of commands.
    Environment,
    /// Headers of HTTP.
    Headers,
    /// Text that names neither a path nor a host.
    Content,
    /// Nothing is known by the name.
    Other,
}

const COMMAND: &[&str] =
    &["command", "cmd", "script", "commands", "shellcommand", "bashcommand", "commandline"];
const WORDS: &[&str] = &["args", "arguments", "argv", "parameters", "params"];
const PATCH: &[&str] = &["patch", "diff", "patchtext", "unifieddiff", "patchcontent"];
const URL: &[&str] = &[
    "url",
    "uri",
    "endpoint",
    "targeturl",
    "sourceurl",
    "href",
    "link",
    "urls",
    "baseurl",
    "webhook",
    "callback",
    "proxy",
];
const HOST: &[&str] = &["host", "hostname", "domain", "server", "hosts"];
const PATH: &[&str] = &[
    "path",
    "file",
    "filepath",
    "filename",
    "targetfile",
    "notebookpath",
    "source",
    "src",
    "destination",
    "dest",
    "dst",
    "oldpath",
    "newpath",
    "target",
    "output",
    "outputpath",
    "paths",
    "files",
    "absolutepath",
    "abspath",
    "relativepath",
    "relativeworkspacepath",
    "newfile",
    "outfile",
    "infile",
    "inputfile",
    "outputfile",
];
/// Last words of names for paths: `save_path`, `configFile`.
const PATH_WORDS: &[&str] =
    &["path", "paths", "file", "files", "filename", "filenames", "filepath", "dir", "directory", "folder"];
const URL_WORDS: &[&str] = &["url", "urls", "uri", "uris"];
const HOST_WORDS: &[&str] = &["host", "hosts", "hostname", "domain"];
/// Directories that are given beside what they are for.
const BASE: &[&str] =
    &["cwd", "workdir", "workingdirectory", "workingdir", "dir", "directory", "folder", "currentdirectory"];
/// Directories in tools for files and commands; elsewhere these words mean other things.
const FILE_BASE: &[&str] = &[
    "root",
    "rootdir",
    "rootpath",
    "base",
    "basedir",
    "basepath",
    "parent",
    "parentdir",
    "projectroot",
    "projectdir",
    "workspace",
    "workspaceroot",
    "repopath",
    "chdir",
    "startdir",
    "dirpath",
];
const OUTPUT: &[&str] = &[
    "output",
    "outputpath",
    "outputfile",
    "outfile",
    "savepath",
    "saveto",
    "downloadpath",
    "filename",
    "destination",
    "dest",
    "dst",
];
const SOURCE: &[&str] = &["source", "sourcepath", "src", "srcpath", "from", "frompath", "original"];
const GLOB: &[&str] =
    &["pattern", "patterns", "glob", "globs", "globpattern", "include", "includes", "includepattern"];
const ENVIRONMENT: &[&str] = &["env", "environment", "envvars", "environ", "envs", "environmentvariables"];
const HEADERS: &[&str] = &["headers", "header", "httpheaders", "requestheaders"];
/// Names of content, in every tool.
const CONTENT: &[&str] = &[
    "content",
    "contents",
    "filecontent",
    "filecontents",
    "filetext",
    "text",
    "newtext",
    "oldtext",
    "newstring",
    "oldstring",
    "newstr",
    "oldstr",
    "newsource",
    "newcontent",
    "oldcontent",
    "codeedit",
    "inserttext",
    "search",
    "replacement",
    "pattern",
    "regex",
    "regexp",
    "query",
    "prompt",
    "description",
    "explanation",
    "instruction",
    "instructions",
    "reason",
    "reasoning",
    "thought",
    "title",
    "message",
    "comment",
    "summary",
    "note",
    "mode",
    "outputmode",
    "editmode",
    "celltype",
    "cellid",
    "encoding",
    "type",
    "filetype",
    "format",
    "language",
    "lang",
    "limit",
    "offset",
    "headlimit",
    "method",
    "useragent",
    "accept",
    "contenttype",
    "cookie",
    "cookies",
    "auth",
    "authorization",
    "token",
    "apikey",
    "username",
    "password",
    "id",
    "sessionid",
    "requestid",
    "callid",
    "toolcallid",
    "status",
    "operation",
    "op",
    "kind",
    "timeout",
    "model",
    "exclude",
    "excludepattern",
    "ignore",
    "sort",
    "sortby",
    "order",
    "extractmode",
    "permissions",
    "newline",
    "lineending",
    "viewrange",
    "oldstart",
];
/// Names of content in tools that connect.
const NETWORK_CONTENT: &[&str] = &[
    "body", "data", "json", "form", "params", "action", "verb", "name", "user", "selector", "value", "schema",
];
/// Names of content in shells; every other text may reach the shell.
const SHELL_CONTENT: &[&str] = &[
    "description",
    "explanation",
    "reason",
    "reasoning",
    "title",
    "justification",
    "timeout",
    "timeoutms",
    "id",
    "sessionid",
    "processid",
    "shellid",
    "requestid",
    "callid",
    "toolcallid",
    "language",
    "mode",
    "encoding",
    "status",
    "message",
    "prompt",
    "user",
    "name",
    "type",
    "kind",
    "sandboxpermissions",
    "yieldtimems",
    "isbackground",
    "signal",
];

/// Variables under names that mean other things in tools that are no shells.
const SHELL_ENVIRONMENT: &[&str] = &["vars", "variables", "envvariables", "setenv", "exports"];
/// The role of a name in the arguments of a tool.
pub(super) fn role(class: ToolClass, name: &str) -> Role {
    let key = squash(name);
    let is = |names: &[&str]| names.contains(&key.as_str());
    let is_file_or_shell = class.is_file() || matches!(class, ToolClass::Shell | ToolClass::Code);
    if matches!(class, ToolClass::Shell | ToolClass::Code) {
        return match () {
            () if is(COMMAND) => Role::Command,
            () if is(WORDS) => Role::Words,
            () if is(ENVIRONMENT) || is(SHELL_ENVIRONMENT) => Role::Environment,
            () if is(BASE) || is(FILE_BASE) => Role::Base,
            () if is(SHELL_CONTENT) => Role::Content,
            () if is(PATH) => Role::Path,
            () if is(URL) => Role::Url,
            () if is(HOST) => Role::Host,
            () => Role::Command,
        };
    }
    if is(ENVIRONMENT) {
        return Role::Environment;
    }
    let is_glob = class == ToolClass::FileSearch || (class == ToolClass::ContentSearch && !is(CONTENT));
    if is_glob && is(GLOB) {
        return Role::Glob;
    }
    if class == ToolClass::FileCopy && is(SOURCE) {
        return Role::Source;
    }
    if class == ToolClass::Network {
        if is(OUTPUT) {
            return Role::Output;
        }
        if is(HEADERS) {
            return Role::Headers;
        }
        if is(NETWORK_CONTENT) {
            return Role::Content;
        }
    }
    if class == ToolClass::Patch && (is(CONTENT) || is(COMMAND)) {
        return Role::Other;
    }
    if is(CONTENT) {
        return Role::Content;
    }
    if is(COMMAND) {
        return Role::Command;
    }
    if is(PATCH) {
        return Role::Patch;
    }
    if is(URL) || ends_in(name, URL_WORDS) {
        return Role::Url;
    }
    if is(HOST) || ends_in(name, HOST_WORDS) {
        return Role::Host;
    }
    if is(BASE) || (is_file_or_shell && is(FILE_BASE)) {
        return Role::Base;
    }
    if is(PATH) || ends_in(name, PATH_WORDS) {
        return Role::Path;
    }
    Role::Other
}

/// Whether a name is known in the arguments of a tool, so that it is no path itself.
pub(super) fn is_known(class: ToolClass, name: &str) -> bool {
    let key = squash(name);
    role(class, name) != Role::Other
        || [SOURCE, OUTPUT, WORDS, FILE_BASE].iter().any(|names| names.contains(&key.as_str()))
        || matches!(
            key.as_str(),
            "name"
                | "to"
                | "edits"
                | "changes"
                | "value"
                | "values"
                | "items"
                | "list"
                | "input"
                | "location"
        )
}

/// Whether the last word of a name is one of these.
fn ends_in(name: &str, words: &[&str]) -> bool {
    let name = name.trim_end_matches(|c: char| !c.is_alphanumeric());
    let bytes = name.as_bytes();
    let starts_word = |at: &usize| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        match (before, bytes.get(*at)) {
            (Some(before), Some(first)) => {
                !before.is_ascii_alphanumeric() || (before.is_ascii_lowercase() && first.is_ascii_uppercase())
            }
            _ => false,
        }
    };
    let start = (0..bytes.len()).rev().find(starts_word);
    let last = start.and_then(|start| name.get(start..)).unwrap_or_default();
    words.iter().any(|word| last.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_has_one_role_in_every_spelling() {
        for name in [
            "file_path",
            "filePath",
            "FilePath",
            "file-path",
            "FILE_PATH",
            "TargetFile",
            "absolute_path",
            "savePath",
            "config_file",
        ] {
            assert_eq!(role(ToolClass::Other, name), Role::Path, "{name}");
        }
        for name in ["profile", "empathy", "dirty", "file_size"] {
            assert_eq!(role(ToolClass::Other, name), Role::Other, "{name}");
        }
        assert_eq!(role(ToolClass::Other, "callbackUrl"), Role::Url);
        assert_eq!(role(ToolClass::Shell, "keys"), Role::Command);
        assert_eq!(role(ToolClass::FileWrite, "workdir"), Role::Base);
        assert_eq!(role(ToolClass::FileCopy, "source"), Role::Source);
        assert_eq!(role(ToolClass::Patch, "text"), Role::Other);
    }
}
