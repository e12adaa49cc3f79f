//! Methods of the JSON-RPC door.

use proctor_core::json::Json;
use proctor_flow::run::Question;
use proctor_flow::scheduler::Invocation;
use proctor_wire::agentcli::describe;
use proctor_wire::agentcli::error::{Code, Failure};
use proctor_wire::agentcli::rpc::Call;
use proctor_wire::agentcli::schema;

use crate::door::Door;
use crate::operations::scheduling::ApplyParams;
use crate::operations::{manifests, ok, records, scheduling, tables, tasks};
use crate::registry;

/// Methods of the protocol.
pub const METHODS: &[&str] = &[
    "agentcli.ping",
    "agentcli.version",
    "agentcli.schema",
    "agentcli.describe",
    "agentcli.validate",
    "agentcli.compile",
    "agentcli.apply",
    "agentcli.inspect",
    "agentcli.convert",
    "agentcli.identity.providers",
    "agentcli.identity.schema",
    "agentcli.identity.resolve",
    "agentcli.identity.validateDelegation",
    "agentcli.authorizationProof.methods",
    "agentcli.authorizationProof.schema",
    "agentcli.authorizationProof.verify",
    "agentcli.authorization.providers",
    "agentcli.authorization.schema",
    "agentcli.authorization.evaluate",
    "agentcli.evidence.providers",
    "agentcli.evidence.schema",
    "agentcli.targets",
    "agentcli.paths",
    "agentcli.audit",
    "agentcli.approvals.list",
    "agentcli.registry.list",
    "agentcli.registry.show",
];

/// Answers one call. `db` is the database that the server was started with.
pub async fn answer(door: &Door, call: &Call, db: Option<&str>) -> Result<Json, Failure> {
    match call.method.as_str() {
        "agentcli.ping" => Ok(ok().with("pong", true)),
        "agentcli.version" => Ok(manifests::version()),
        "agentcli.schema" => schema::result(call.text("target")?, call.flag("legacy")?),
        "agentcli.describe" => describe::result(call.text("target")?),
        "agentcli.validate" => Ok(manifests::findings(given(call)?).to_json()),
        "agentcli.compile" => {
            let default = door.surroundings.variable("AGENTCLI_TARGET");
            manifests::compile(given(call)?, call.text("target")?, default, call.flag("explain")?)
        }
        "agentcli.convert" => manifests::convert(call.required("manifest")?),
        "agentcli.apply" => scheduling::apply(door, given(call)?, &apply_params(call, db)?).await,
        "agentcli.inspect" => scheduling::inspect(door, &call.params, call.text("dbPath")?.or(db)),
        "agentcli.identity.providers" => Ok(tables::identity_providers()),
        "agentcli.identity.schema" => tables::identity_schema(call.required_text("provider")?),
        "agentcli.identity.resolve" => tasks::resolve(door, question(call)?).await,
        "agentcli.identity.validateDelegation" => tasks::validate_delegation(door, question(call)?).await,
        "agentcli.authorizationProof.methods" => Ok(tables::proof_methods()),
        "agentcli.authorizationProof.schema" => tables::proof_schema(call.required_text("method")?),
        "agentcli.authorizationProof.verify" => tasks::verify_proof(door, question(call)?).await,
        "agentcli.authorization.providers" => Ok(tables::authorization_providers()),
        "agentcli.authorization.schema" => tables::authorization_schema(call.required_text("provider")?),
        "agentcli.authorization.evaluate" => tasks::evaluate(door, question(call)?).await,
        "agentcli.evidence.providers" => Ok(tables::evidence_providers()),
        "agentcli.evidence.schema" => tables::evidence_schema(call.required_text("provider")?),
        "agentcli.targets" => Ok(ok().with("targets", describe::targets())),
        "agentcli.paths" => Ok(paths(door)),
        "agentcli.audit" => records::audit(door, call.param("limit")),
        "agentcli.approvals.list" => {
            records::approvals(door, call.text("status")?, call.text("workflowId")?, call.text("taskId")?)
        }
        "agentcli.registry.list" => registry_list(door),
        "agentcli.registry.show" => registry_show(door, call.required_text("name")?),
        other => {
            let shown: String = other.chars().take(100).collect();
            Err(Failure::new(Code::UnknownCommand, format!("method not found: `{shown}`")))
        }
    }
}

/// The parameter `manifest`, of whatever type: validation judges it.
fn given(call: &Call) -> Result<&Json, Failure> {
    call.params.get("manifest").ok_or_else(|| Failure::invalid_argument("`params.manifest` is required"))
}

fn question(call: &Call) -> Result<Question<'_>, Failure> {
    Ok(Question {
        manifest: call.required("manifest")?,
        workflow: call.text("workflowId")?,
        task: call.required_text("taskId")?,
        allow_commands: call.flag("allowCommands")?,
    })
}

fn apply_params(call: &Call, db: Option<&str>) -> Result<ApplyParams, Failure> {
    let own = |name| call.text(name).map(|text| text.map(str::to_owned));
    Ok(ApplyParams {
        scheduler: Invocation {
            prefix: own("schedulerPrefix")?,
            bin: own("schedulerBin")?,
            db_path: own("dbPath")?.or_else(|| db.map(str::to_owned)),
        },
        dry_run: call.flag("dryRun")?,
        explain: call.flag("explain")?,
        adopt_by: own("adoptBy")?,
        allow_commands: call.flag("allowProofCommand")? || call.flag("allowCommands")?,
    })
}

/// Folders and files that the program uses.
pub(crate) fn paths(door: &Door) -> Json {
    let shown = |path: &std::path::Path| path.display().to_string();
    let paths = Json::object()
        .with("home", shown(&door.surroundings.home))
        .with("manifests", shown(&door.surroundings.manifests()))
        .with("state", shown(&door.surroundings.state))
        .with("working_dir", shown(&door.surroundings.working_dir));
    ok().with("paths", paths)
}

pub(crate) fn registry_list(door: &Door) -> Result<Json, Failure> {
    let entries = registry::list(&door.surroundings).map_err(|error| registry_failure(&error))?;
    Ok(ok().with("entries", entries))
}

pub(crate) fn registry_show(door: &Door, name: &str) -> Result<Json, Failure> {
    let manifest = registry::show(&door.surroundings, name).map_err(|error| registry_failure(&error))?;
    Ok(ok().with("name", name.strip_suffix(".json").unwrap_or(name)).with("manifest", manifest))
}

pub(crate) fn registry_failure(error: &registry::RegistryError) -> Failure {
    use registry::RegistryError::{Input, Io, Name, NotFound, Private, Taken};
    let code = match error {
        Name(_) | NotFound(_) | Taken(_) => Code::InvalidArgument,
        Input(_) => Code::ParseError,
        Private(_) | Io { .. } => Code::InternalError,
    };
    Failure::new(code, error.to_string())
}
