//! Cedar policies over a request of the caller's: own entities, schema and context.

use cedar_policy::{
    AuthorizationError, Authorizer, Context, Decision, Entities, EntityId, EntityTypeName, EntityUid,
    PolicySet, Request, Schema, ValidationMode, Validator,
};
use proctor_core::json::Json;

use super::super::{ModuleProblem, bounds, truncate};
use super::check::{SYNTAX, syntax_problem};
use super::context;

/// Largest schema and largest set of entities, as text.
const MAX_EXTRA_BYTES: usize = 1 << 20;

/// A request that could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CedarFailure {
    /// An entity is not written as Cedar wants it.
    #[error("`{0}` is neither an entity (`Type::\"id\"`) nor the name of an entity type")]
    Entity(String),
    /// The entities are not in Cedar's JSON form.
    #[error("the entities cannot be read: {0}")]
    Entities(String),
    /// The request does not fit the schema, or Cedar cannot hold it.
    #[error("the request cannot be shown to Cedar: {0}")]
    Request(String),
    /// A policy failed, so that its opinion is unknown.
    #[error("policy `{policy}` could not be evaluated: {reason}")]
    Policy {
        /// The policy.
        policy: String,
        /// The reason.
        reason: String,
    },
}

/// A request, before its mapping to entities.
#[derive(Debug, Clone, Copy)]
pub struct CedarRequest<'r> {
    /// Entity, or entity type and identifier, of the principal.
    pub principal: (&'r str, &'r str),
    /// Entity, or entity type and identifier, of the action.
    pub action: (&'r str, &'r str),
    /// Entity, or entity type and identifier, of the resource.
    pub resource: (&'r str, &'r str),
    /// Context: nulls are left out, arrays become sets, numbers that are not whole become texts.
    pub context: &'r Json,
    /// Entities in Cedar's JSON form.
    pub entities: Option<&'r Json>,
}

/// Cedar's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CedarAnswer {
    /// Whether a policy permits and none forbids.
    pub is_permitted: bool,
    /// Policies that determined the answer: their `@id`, else their position.
    pub policies: Vec<String>,
}

/// Cedar policies and their schema, compiled once.
#[derive(Debug)]
pub struct CedarQuery {
    policies: PolicySet,
    schema: Option<Schema>,
}

impl CedarQuery {
    /// Compiles policies, and checks them against the schema if there is one.
    pub fn compile(file: &str, text: &str, schema: Option<&str>) -> Result<CedarQuery, Vec<ModuleProblem>> {
        bounds::check(file, text, &SYNTAX).map_err(|problem| vec![problem])?;
        let policies: PolicySet = text.parse().map_err(|errors: cedar_policy::ParseErrors| {
            errors.iter().map(|error| syntax_problem(file, text, &error.into())).collect::<Vec<_>>()
        })?;
        let problem = |message: String| vec![ModuleProblem::at(file, text, 0, truncate(&message))];
        if policies.templates().next().is_some() {
            return Err(problem("templates are not supported: write out principal and resource".to_owned()));
        }
        let schema = match schema {
            None => None,
            Some(schema) => {
                bounds::check("schema", schema, &SYNTAX).map_err(|problem| vec![problem])?;
                let (schema, _) = Schema::from_cedarschema_str(schema)
                    .map_err(|error| problem(format!("the schema cannot be read: {error}")))?;
                let result = Validator::new(schema.clone()).validate(&policies, ValidationMode::Strict);
                let problems: Vec<ModuleProblem> = result
                    .validation_errors()
                    .map(|error| ModuleProblem::at(file, text, 0, truncate(&error.to_string())))
                    .collect();
                if !problems.is_empty() {
                    return Err(problems);
                }
                Some(schema)
            }
        };
        Ok(CedarQuery { policies, schema })
    }

    /// Evaluates a request. A policy that fails is an error, whatever the others say.
    pub fn evaluate(&self, request: CedarRequest<'_>) -> Result<CedarAnswer, CedarFailure> {
        let action = entity(request.action)?;
        let entities = self.entities(request.entities)?;
        let fault = |error: &dyn std::fmt::Display| CedarFailure::Request(truncate(&error.to_string()));
        let context =
            Context::from_pairs(context::members(request.context)).map_err(|error| fault(&error))?;
        let asked = Request::new(
            entity(request.principal)?,
            action,
            entity(request.resource)?,
            context,
            self.schema.as_ref(),
        )
        .map_err(|error| fault(&error))?;
        let response = Authorizer::new().is_authorized(&asked, &self.policies, &entities);
        if let Some(AuthorizationError::PolicyEvaluationError(error)) = response.diagnostics().errors().next()
        {
            return Err(CedarFailure::Policy {
                policy: self.name(error.policy_id()),
                reason: truncate(&error.inner().to_string()),
            });
        }
        let mut policies: Vec<String> = response.diagnostics().reason().map(|id| self.name(id)).collect();
        policies.sort();
        Ok(CedarAnswer { is_permitted: response.decision() == Decision::Allow, policies })
    }

    fn entities(&self, entities: Option<&Json>) -> Result<Entities, CedarFailure> {
        let Some(entities) = entities else { return Ok(Entities::empty()) };
        let text = entities.to_string();
        if text.len() > MAX_EXTRA_BYTES {
            return Err(CedarFailure::Entities(format!("they are larger than {MAX_EXTRA_BYTES} bytes")));
        }
        Entities::from_json_str(&text, self.schema.as_ref())
            .map_err(|error| CedarFailure::Entities(truncate(&error.to_string())))
    }

    fn name(&self, id: &cedar_policy::PolicyId) -> String {
        match self.policies.policy(id).and_then(|policy| policy.annotation("id")) {
            Some(name) => truncate(name),
            None => id.to_string(),
        }
    }
}

/// The entity that a text names, or one of the type that it names.
fn entity((text, id): (&str, &str)) -> Result<EntityUid, CedarFailure> {
    if let Ok(entity) = text.parse::<EntityUid>() {
        return Ok(entity);
    }
    let kind: EntityTypeName = text.parse().map_err(|_| CedarFailure::Entity(truncate(text)))?;
    Ok(EntityUid::from_type_name_and_id(kind, EntityId::new(id)))
}
