//! `TopologyService`: agent tree and communication edges.

use proctor_clients::assembly::services::topology::topology_service_server::TopologyService;
use proctor_core::json::Json;
use proctor_policy::state::{AgentInfo, Registry};
use proctor_wire::assembly::proto::common::v1::AgentId;
use proctor_wire::assembly::proto::topology::v1::{
    GetAgentTreeRequest, GetAgentTreeResponse, GetLineageRequest, GetLineageResponse, GetTeamMembersRequest,
    GetTeamMembersResponse, ReportEdgeRequest, ReportEdgeResponse, TopologyAgent, TreeNode,
};
use tonic::{Request, Response, Status};

use super::event_json::{is_deep, shallow};
use super::identity::{Holder, caller_of};
use super::registering::{MAX_DEPTH, find};
use super::{AssemblyDoor, DOOR, lock, unavailable};
use proctor_engine::{Report, Spent, Wait};

/// Edge types.
const EDGES: [&str; 6] = ["delegates_to", "calls", "reads", "writes", "approves", "messages"];

/// Agents per answer.
const MAX_AGENTS: usize = 10_000;

#[tonic::async_trait]
impl TopologyService for AssemblyDoor {
    async fn get_agent_tree(
        &self,
        request: Request<GetAgentTreeRequest>,
    ) -> Result<Response<GetAgentTreeResponse>, Status> {
        let holder = self.holder(request.metadata())?;
        let request = request.into_inner();
        let most = if request.max_depth == 0 { MAX_DEPTH } else { request.max_depth.min(MAX_DEPTH) };
        let tree = self.engine().look_up(|registry| {
            let agent = self.visible(registry, &holder, &request.agent_id)?;
            Ok::<_, Status>(tree(registry, agent, most, &mut MAX_AGENTS.clone()))
        });
        Ok(Response::new(GetAgentTreeResponse { root: Some(tree.map_err(unavailable)??) }))
    }

    async fn get_lineage(
        &self,
        request: Request<GetLineageRequest>,
    ) -> Result<Response<GetLineageResponse>, Status> {
        let holder = self.holder(request.metadata())?;
        let request = request.into_inner();
        let ancestors = self.engine().look_up(|registry| {
            let agent = self.visible(registry, &holder, &request.agent_id)?;
            let lineage = registry.lineage(&agent.principal);
            Ok::<_, Status>(lineage.into_iter().map(|agent| shown(registry, agent)).collect())
        });
        Ok(Response::new(GetLineageResponse { ancestors: ancestors.map_err(unavailable)?? }))
    }

    async fn get_team_members(
        &self,
        request: Request<GetTeamMembersRequest>,
    ) -> Result<Response<GetTeamMembersResponse>, Status> {
        let holder = self.holder(request.metadata())?;
        let team = self.engine().identifier(&request.into_inner().team_id);
        let org = match &holder {
            Holder::Agent(agent) if agent.team != team => {
                return Err(Status::permission_denied("agents see their own team only"));
            }
            Holder::Agent(agent) => Some(agent.org.clone()),
            Holder::Approver(_) => None,
        };
        let members = self.engine().look_up(|registry| {
            let members = registry.list().filter(|agent| {
                let is_own = org.as_ref().is_none_or(|org| agent.org == *org);
                agent.registration.is_some() && agent.team == team && is_own
            });
            members.take(MAX_AGENTS).map(|agent| shown(registry, agent)).collect()
        });
        Ok(Response::new(GetTeamMembersResponse { members: members.map_err(unavailable)? }))
    }

    async fn report_edge(
        &self,
        request: Request<ReportEdgeRequest>,
    ) -> Result<Response<ReportEdgeResponse>, Status> {
        let agent = self.agent_holder(request.metadata())?;
        let edge = request.into_inner();
        if !EDGES.contains(&edge.edge_type.as_str()) {
            let text = format!("`edge_type` is one of {}", EDGES.join(", "));
            return Err(Status::invalid_argument(text));
        }
        let metadata = match edge.metadata_json.as_str() {
            "" => Json::Null,
            text => Json::parse(text.as_bytes())
                .map_err(|error| Status::invalid_argument(format!("`metadata_json` is not JSON: {error}")))?,
        };
        let looked = self.engine().look_up(|registry| {
            let mut keys = lock(&self.inner.keys);
            let mut named = |named: &str| {
                find(self.engine(), registry, &mut keys, named, &names(&agent))
                    .map(|agent| agent.principal.clone())
            };
            (named(&edge.source_agent_id), named(&edge.target_agent_id))
        });
        let (source, target) = looked.map_err(unavailable)?;
        let (Some(source), Some(target)) = (source, target) else {
            return Err(Status::not_found("one end of the edge is not a registered agent"));
        };
        if source != agent.principal {
            return Err(Status::permission_denied("an agent reports edges that begin with it"));
        }
        let data = Json::object()
            .with("source", source)
            .with("target", target)
            .with("type", edge.edge_type)
            .with(if is_deep(&metadata) { "metadata_text" } else { "metadata" }, shallow(metadata));
        let report = Report::Observation {
            code: "edge".to_owned(),
            data,
            alarms: Vec::new(),
            spent: Spent::default(),
        };
        let home = format!("registration {}", agent.registered_seq);
        let reservation = self.reserve().await?;
        let queued =
            self.engine().enqueue_report(reservation, &caller_of(&agent), &agent.agent, &home, DOOR, report);
        let receipt = self.engine().report_recorded(queued.map_err(unavailable)?, Wait::Task).await;
        let id = i64::try_from(receipt.map_err(unavailable)?.seq()).unwrap_or(i64::MAX);
        Ok(Response::new(ReportEdgeResponse { id }))
    }
}

fn names(agent: &AgentInfo) -> AgentId {
    AgentId { org_id: agent.org.clone(), team_id: agent.team.clone(), agent_id: agent.agent.clone() }
}

impl AssemblyDoor {
    /// Looks up an agent that is visible to the caller: agents see their team.
    fn visible<'a>(
        &self,
        registry: &'a Registry,
        holder: &Holder,
        named: &str,
    ) -> Result<&'a AgentInfo, Status> {
        let (beside, is_approver) = match holder {
            Holder::Agent(agent) => (names(agent), false),
            Holder::Approver(_) => (AgentId::default(), true),
        };
        let found = find(self.engine(), registry, &mut lock(&self.inner.keys), named, &beside)
            .or_else(|| is_approver.then(|| registry.list().find(|agent| agent.agent == named)).flatten());
        let may_see = |agent: &&AgentInfo| match holder {
            Holder::Approver(_) => true,
            Holder::Agent(own) => {
                agent.principal == own.principal || (agent.team == own.team && agent.org == own.org)
            }
        };
        found
            .filter(|agent| agent.registration.is_some())
            .filter(may_see)
            .ok_or_else(|| Status::not_found(format!("agent `{named}` is not registered")))
    }
}

fn tree(registry: &Registry, agent: &AgentInfo, depth_left: u32, left: &mut usize) -> TreeNode {
    let mut children = Vec::new();
    if let Some(depth_left) = depth_left.checked_sub(1) {
        for child in registry.children(&agent.principal) {
            let Some(rest) = left.checked_sub(1) else { break };
            *left = rest;
            children.push(tree(registry, child, depth_left, left));
        }
    }
    TreeNode { agent: Some(shown(registry, agent)), children }
}

fn shown(registry: &Registry, agent: &AgentInfo) -> TopologyAgent {
    let own = agent.registration.clone().unwrap_or_default();
    TopologyAgent {
        id: proctor_engine::orders::key_of(agent),
        name: own.name,
        depth: own.depth,
        status: proctor_engine::orders::status(registry, agent).to_owned(),
        team_id: agent.team.clone(),
        delegation_reason: own.reason,
        spawned_by_tool: own.tool,
    }
}
