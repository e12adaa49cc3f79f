//! The command line: one invocation, its output and its end.

use std::io::{BufRead, Read, Write};

use proctor_core::json::Json;
use proctor_flow::run::{Cancel, Question, Refusal};
use proctor_flow::scheduler::Invocation as Scheduler;
use proctor_wire::agentcli::describe;
use proctor_wire::agentcli::error::{Code, Failure};
use proctor_wire::agentcli::finding::{Finding, Validation};
use proctor_wire::agentcli::schema;

use crate::arguments::{self, ArgumentError, Command, Invocation};
use crate::door::Door;
use crate::input::{self, Input, InputError};
use crate::methods;
use crate::operations::runs::{self, Ended, RunParams};
use crate::operations::scheduling::{self, ApplyParams};
use crate::operations::{manifests, ok, records, tables, tasks};
use crate::output::{self, Format};
use crate::{registry, serve, write};

/// Standard streams of the program.
pub struct Streams<'a> {
    /// Standard input; `None` if it is a terminal.
    pub stdin: Option<&'a mut dyn BufRead>,
    /// Standard output.
    pub stdout: &'a mut dyn Write,
    /// Standard error.
    pub stderr: &'a mut dyn Write,
}

/// End of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Success.
    Ok,
    /// Failure with this code.
    Failed(Code),
    /// The run that it started failed, although it was allowed.
    RunFailed,
    /// No task of the workflow failed, but some were refused; this is the code of the first.
    RunRefused(Code),
    /// The output could not be written.
    Unwritten,
}

impl End {
    /// The exit code of the program `agentcli`: 0 or 1.
    pub const fn code(self) -> u8 {
        match self {
            End::Ok => 0,
            _ => 1,
        }
    }
}

/// Output of a command.
enum Printed {
    Json(Json),
    Text(String),
    /// JSON of a run that did not succeed; the code of its first refusal, if nothing else went wrong.
    FailedRun(Json, Option<Code>),
    /// Nothing more.
    Nothing,
}

/// Failure of a command, with what belongs on standard error.
struct Trouble {
    code: Code,
    json: Json,
    /// Whether a run was let through and could not start: its program does not exist, or cannot be executed.
    is_run: bool,
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Trouble {
        Trouble::from(Refusal::from(failure))
    }
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Trouble {
        let is_run = refusal.execution_id.is_some() && refusal.failure.code == Code::InvalidArgument;
        Trouble { code: refusal.failure.code, json: refusal.to_json(), is_run }
    }
}

impl From<ArgumentError> for Trouble {
    fn from(error: ArgumentError) -> Trouble {
        let code = if error.is_unknown_command() { Code::UnknownCommand } else { Code::InvalidArgument };
        Failure::new(code, error.to_string()).into()
    }
}

impl From<InputError> for Trouble {
    fn from(error: InputError) -> Trouble {
        let code = match error {
            InputError::Json { .. } | InputError::Yaml { .. } => Code::ParseError,
            _ => Code::InvalidArgument,
        };
        Failure::new(code, error.to_string()).into()
    }
}

/// Runs one command. `program` is the name in help texts; `cancel` stops a run.
pub async fn run(
    door: &Door,
    program: &str,
    arguments: &[String],
    streams: Streams<'_>,
    cancel: &mut Cancel,
) -> End {
    let Streams { stdin, stdout, stderr } = streams;
    let mut format = Format::default();
    let outcome = match arguments::parse(arguments).and_then(|invocation| {
        format = default_format(door)?;
        Ok(invocation)
    }) {
        Ok(invocation) => {
            if invocation.has("ndjson") {
                format = Format::Lines;
            } else if invocation.has("pretty") || invocation.has("json") {
                format = Format::Pretty;
            }
            let is_json = invocation.has("json") || invocation.has("ndjson");
            let run = Program { door, name: program, invocation: &invocation, is_json };
            run.command(stdin, stdout, cancel).await
        }
        Err(error) => Err(error.into()),
    };
    let (end, line) = match outcome {
        Ok(Printed::Json(json)) => (End::Ok, Some(output::text(&json, format))),
        Ok(Printed::Text(text)) => (End::Ok, Some(text)),
        Ok(Printed::FailedRun(json, refused)) => {
            (refused.map_or(End::RunFailed, End::RunRefused), Some(output::text(&json, format)))
        }
        Ok(Printed::Nothing) => (End::Ok, None),
        Err(trouble) => {
            let _ = writeln!(stderr, "{}", output::pretty(&trouble.json));
            return if trouble.is_run { End::RunFailed } else { End::Failed(trouble.code) };
        }
    };
    match line.map_or(Ok(()), |line| writeln!(stdout, "{line}")).and_then(|()| stdout.flush()) {
        Ok(()) => end,
        Err(_) => End::Unwritten,
    }
}

fn default_format(door: &Door) -> Result<Format, ArgumentError> {
    match door.surroundings.variable("AGENTCLI_OUTPUT") {
        Some("ndjson") => Ok(Format::Lines),
        None | Some("" | "json" | "pretty") => Ok(Format::Pretty),
        Some(other) => Err(ArgumentError::UnknownFormat(other.to_owned())),
    }
}

struct Program<'a> {
    door: &'a Door,
    /// Name in help texts.
    name: &'a str,
    invocation: &'a Invocation,
    is_json: bool,
}

impl Program<'_> {
    async fn command(
        &self,
        stdin: Option<&mut dyn BufRead>,
        stdout: &mut dyn Write,
        cancel: &mut Cancel,
    ) -> Result<Printed, Trouble> {
        let Program { door, invocation, .. } = self;
        let word = |position| invocation.word(position).unwrap_or_default();
        let json = match invocation.command {
            Command::Version => manifests::version(),
            Command::Help => return Ok(self.help()),
            Command::Schema => schema::result(invocation.word(0), invocation.has("legacy"))?,
            Command::Describe => describe::result(invocation.word(0))?,
            Command::Targets => ok().with("targets", describe::targets()),
            Command::Paths => methods::paths(door),
            Command::IdentityProviders => tables::identity_providers(),
            Command::IdentitySchema => tables::identity_schema(word(0))?,
            Command::ProofMethods => tables::proof_methods(),
            Command::ProofSchema => tables::proof_schema(word(0))?,
            Command::AuthorizationProviders => tables::authorization_providers(),
            Command::AuthorizationSchema => tables::authorization_schema(word(0))?,
            Command::EvidenceProviders => tables::evidence_providers(),
            Command::EvidenceSchema => tables::evidence_schema(word(0))?,
            Command::Inspect => self.inspect()?,
            Command::Audit => records::audit(door, invocation.value("limit").map(Json::from).as_ref())?,
            Command::Verify => records::verify(door, word(0), invocation.value("allowed-signers"))?,
            Command::ApprovalsList => records::approvals(
                door,
                invocation.value("status"),
                invocation.value("workflow"),
                invocation.value("task"),
            )?,
            Command::RegistryList => methods::registry_list(door)?,
            Command::RegistryShow => methods::registry_show(door, word(0))?,
            Command::RegistryRemove => {
                let path = registry::remove(&door.surroundings, word(0))
                    .map_err(|error| methods::registry_failure(&error))?;
                ok().with("name", word(0)).with("removed", path.display().to_string())
            }
            Command::Serve => {
                self.serve(stdin, stdout).await?;
                return Ok(Printed::Nothing);
            }
            _ => return self.with_manifest(stdin, cancel).await,
        };
        Ok(Printed::Json(json))
    }

    /// Commands whose first word is a manifest.
    async fn with_manifest(
        &self,
        stdin: Option<&mut dyn BufRead>,
        cancel: &mut Cancel,
    ) -> Result<Printed, Trouble> {
        let Program { door, invocation, .. } = self;
        let named = invocation.word(0).unwrap_or_default();
        let mut stdin = stdin;
        let reader = stdin.as_mut().map(|stdin| stdin as &mut dyn BufRead);
        let mut reader = reader.map(AsRead);
        let input =
            input::read(named, &door.surroundings, reader.as_mut().map(|reader| reader as &mut dyn Read))?;
        let manifest = &input.manifest;
        let task = invocation.word(1).unwrap_or_default();
        let question = Question {
            manifest,
            workflow: invocation.value("workflow"),
            task,
            allow_commands: invocation.has("allow-commands"),
        };
        let json = match invocation.command {
            Command::Validate => validated(&input)?,
            Command::Compile => self.compile(&input)?,
            Command::Convert => return self.convert(&input),
            Command::Plan => {
                let plan =
                    scheduling::plan(door, manifest, &self.apply_params()).await.map_err(located(&input))?;
                let json = || Printed::Json(ok().with("plan", plan.to_json()));
                return Ok(if self.is_json { json() } else { Printed::Text(plan.to_text()) });
            }
            Command::Apply if invocation.has("check-capabilities") => {
                let plan =
                    scheduling::plan(door, manifest, &self.apply_params()).await.map_err(located(&input))?;
                let plan = plan.to_json();
                let part = |name: &str| plan.get(name).cloned().unwrap_or_default();
                ok().with("capabilities", part("capabilities")).with("handoff", part("handoff"))
            }
            Command::Apply => {
                scheduling::apply(door, manifest, &self.apply_params()).await.map_err(located(&input))?
            }
            Command::IdentityResolve => tasks::resolve(door, question).await.map_err(located(&input))?,
            Command::IdentityValidateDelegation => {
                tasks::validate_delegation(door, question).await.map_err(located(&input))?
            }
            Command::ProofVerify => tasks::verify_proof(door, question).await.map_err(located(&input))?,
            Command::AuthorizationEvaluate => {
                tasks::evaluate(door, question).await.map_err(located(&input))?
            }
            Command::Whoami => tasks::whoami(door, question).await.map_err(located(&input))?,
            Command::RegistryAdd => self.register(&input, named)?,
            Command::Exec => {
                let ended = runs::exec(door, manifest, task, &self.run_params(), cancel).await;
                return Ok(printed(ended.map_err(located_refusal(&input))?));
            }
            _ => {
                let root = invocation.value("root");
                let ended = runs::run(door, manifest, root, &self.run_params(), cancel).await;
                return Ok(printed(ended.map_err(located_refusal(&input))?));
            }
        };
        Ok(Printed::Json(json))
    }

    fn help(&self) -> Printed {
        let text = arguments::usage(self.name, self.invocation.word(0));
        if self.is_json { Printed::Json(ok().with("usage", text)) } else { Printed::Text(text) }
    }

    fn inspect(&self) -> Result<Json, Failure> {
        let value = |name: &str| self.invocation.value(name).map_or(Json::Null, Json::from);
        let params = Json::object()
            .with("entity", self.invocation.word(0).map_or(Json::Null, Json::from))
            .with("limit", value("limit"))
            .with("fields", value("fields"))
            .with("sanitize", value("sanitize"));
        scheduling::inspect(self.door, &params, self.invocation.value("db"))
    }

    fn compile(&self, input: &Input) -> Result<Json, Trouble> {
        let default = self.door.surroundings.variable("AGENTCLI_TARGET");
        let explain = self.invocation.has("explain");
        let target = self.invocation.value("target");
        let (target, output) =
            manifests::compiled(&input.manifest, target, default, explain).map_err(located(input))?;
        match self.invocation.value("write") {
            Some(file) => {
                let path = self.written(file, &output)?;
                Ok(ok().with("target", target.word()).with("written", path))
            }
            None => Ok(output),
        }
    }

    fn convert(&self, input: &Input) -> Result<Printed, Trouble> {
        let manifest = manifests::converted(&input.manifest).map_err(located(input))?;
        Ok(Printed::Json(match self.invocation.value("output") {
            Some(file) => {
                let path = self.written(file, &manifest)?;
                ok().with("written", path)
            }
            None => manifest,
        }))
    }

    fn written(&self, file: &str, value: &Json) -> Result<String, Failure> {
        let text = format!("{}\n", output::pretty(value));
        let path = write::below(&self.door.surroundings.working_dir, file, &text)
            .map_err(|error| Failure::invalid_argument(error.to_string()))?;
        Ok(path.display().to_string())
    }

    fn register(&self, input: &Input, named: &str) -> Result<Json, Trouble> {
        validated(input)?;
        let stem = || {
            let file = input.file.as_deref()?.file_stem()?;
            Some(file.to_str()?.to_owned())
        };
        let name = self.invocation.value("name").map(str::to_owned).or_else(stem).ok_or_else(|| {
            Failure::invalid_argument(format!("`{named}` has no file name: give one with `--name`"))
        })?;
        let path = registry::add(&self.door.surroundings, &name, &input.manifest)
            .map_err(|error| methods::registry_failure(&error))?;
        Ok(ok().with("name", name).with("path", path.display().to_string()))
    }

    fn apply_params(&self) -> ApplyParams {
        let value = |name: &str| self.invocation.value(name).map(str::to_owned);
        ApplyParams {
            scheduler: Scheduler {
                prefix: value("scheduler-prefix"),
                bin: value("scheduler-bin"),
                db_path: value("db"),
            },
            dry_run: self.invocation.has("dry-run"),
            explain: self.invocation.has("explain"),
            adopt_by: value("adopt-by"),
            allow_commands: self.invocation.has("allow-proof-command")
                || self.invocation.has("allow-commands"),
        }
    }

    fn run_params(&self) -> RunParams<'_> {
        let invocation = self.invocation;
        let variable = |name: &str| self.door.surroundings.variable(name);
        RunParams {
            workflow: invocation.value("workflow"),
            timeout_ms: invocation.value("timeout"),
            evidence_provider: invocation
                .value("evidence-provider")
                .or_else(|| invocation.value("signer"))
                .or_else(|| variable("AGENTCLI_EVIDENCE_PROVIDER"))
                .or_else(|| variable("AGENTCLI_SIGNER")),
            signing_key: invocation.value("signing-key"),
            instance_id: invocation.value("instance-id"),
            approval_id: invocation.value("approval-id"),
            require_evidence: invocation.has("require-evidence"),
            require_authorization: invocation.has("require-authorization"),
            has_identity: invocation.has("identity-debug"),
            has_presentation: invocation.has("presentation-debug"),
            allow_commands: invocation.has("allow-commands"),
            dry_run: invocation.has("dry-run"),
        }
    }

    /// Serves JSON-RPC until the input ends.
    async fn serve(&self, stdin: Option<&mut dyn BufRead>, stdout: &mut dyn Write) -> Result<(), Failure> {
        let stdin: &mut dyn BufRead = match stdin {
            Some(stdin) => stdin,
            None => {
                return Err(Failure::invalid_argument(
                    "`serve` reads requests from standard input, which is a terminal",
                ));
            }
        };
        let db = self.invocation.value("db");
        let door = self.door;
        let served = serve::serve(stdin, stdout, async |call| methods::answer(door, call, db).await).await;
        served.map_err(|error| Failure::new(Code::InternalError, proctor_system::describe(&error)))
    }
}

fn printed(ended: Ended) -> Printed {
    if ended.is_ok { Printed::Json(ended.json) } else { Printed::FailedRun(ended.json, ended.refused) }
}

/// Reading half of a buffered reader behind a reference.
struct AsRead<'a>(&'a mut dyn BufRead);

impl Read for AsRead<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer)
    }
}

/// The findings of a valid manifest; those of an invalid one are a failure.
fn validated(input: &Input) -> Result<Json, Trouble> {
    let validation = manifests::findings(&input.manifest);
    if validation.is_ok() {
        return Ok(with_positions(&validation, input));
    }
    Err(located(input)(Failure::invalid_manifest(validation)))
}

/// Adds positions of a YAML file to the findings of a failure.
fn located(input: &Input) -> impl Fn(Failure) -> Trouble + '_ {
    move |failure| {
        let validation = failure.validation.clone();
        let mut trouble = Trouble::from(failure);
        // The manifest was read: what cannot be parsed is the answer of somebody else.
        if trouble.code == Code::ParseError {
            trouble.code = Code::SchedulerError;
        }
        add_positions(&mut trouble, validation, input);
        trouble
    }
}

/// Adds positions of a YAML file to the findings of a run's refusal.
fn located_refusal(input: &Input) -> impl Fn(Refusal) -> Trouble + '_ {
    move |refusal| {
        let validation = refusal.failure.validation.clone();
        let mut trouble = Trouble::from(refusal);
        add_positions(&mut trouble, validation, input);
        trouble
    }
}

fn add_positions(trouble: &mut Trouble, validation: Option<Validation>, input: &Input) {
    if let Some(validation) = validation
        && let Json::Object(members) = &mut trouble.json
    {
        for (name, value) in members.iter_mut() {
            if name == "validation" {
                *value = with_positions(&validation, input);
            }
        }
    }
}

fn with_positions(validation: &Validation, input: &Input) -> Json {
    let finding = |finding: &Finding| {
        let mut json = finding.to_json();
        if let Some(position) = input.position(finding) {
            json.push("line", position.line as u64);
            json.push("column", position.column as u64);
        }
        if finding.path == "$.version" && input.has_unquoted_version() {
            json.push("hint", "quote the version: `version: \"0.2\"` is text, 0.2 is a number");
        }
        json
    };
    let list = |findings: &[Finding]| Json::Array(findings.iter().map(finding).collect());
    Json::object()
        .with("ok", validation.is_ok())
        .with("errors", list(&validation.errors))
        .with("warnings", list(&validation.warnings))
}
