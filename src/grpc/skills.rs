//! `SkillService`.

use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, stream};
use tonic::{Request, Response, Status, Streaming};

use super::call::{Received, field, or_default, page, respond};
use super::proto::register_skill_request::Part;
use super::proto::skill_service_server::SkillService;
use super::proto::{
    DeleteSkillRequest, DeleteSkillResponse, GetSkillRequest, ListSkillsRequest, ListSkillsResponse,
    RegisterSkillHeader, RegisterSkillRequest, RegisterSkillResponse, Skill,
};
use super::status::{failed, framework_error};
use crate::api::List;
use crate::api::skills::{self, Push};
use crate::error::Error;
use crate::http::{ApiState, check_requirements, read_error, receive_pieces, run_detached};

pub(super) struct Skills(pub(super) Arc<ApiState>);

#[tonic::async_trait]
impl SkillService for Skills {
    async fn register_skill(
        &self,
        request: Request<Streaming<RegisterSkillRequest>>,
    ) -> Result<Response<RegisterSkillResponse>, Status> {
        let Received {
            call, mut message, ..
        } = Received::new(&self.0, request)?;
        let (header, first) = match next(&mut message).await.map_err(failed)? {
            Some(Part::Header(header)) => (header, None),
            Some(Part::Chunk(chunk)) => (RegisterSkillHeader::default(), Some(chunk)),
            None => (RegisterSkillHeader::default(), None),
        };
        let requirements = header.requirements;
        check_requirements(&requirements).map_err(failed)?;
        let received = receive_pieces(&self.0, call.tenant(), chunks(first, message)).await;
        let (archive, slot) = received.map_err(failed)?;
        let engine = call.engine().clone();
        let push = Push {
            archive,
            fallback_name: header.name,
            requirements: (!requirements.is_empty()).then_some(requirements),
        };
        let caller = call.caller.clone();
        let publish = async move { skills::publish(&engine, &caller, push).await };
        let published = run_detached(slot, publish).await.map_err(failed)?;
        let response = RegisterSkillResponse {
            skill: Some(published.skill.into()),
            existed: published.existed,
        };
        respond(&call, response)
    }

    async fn list_skills(
        &self,
        request: Request<ListSkillsRequest>,
    ) -> Result<Response<ListSkillsResponse>, Status> {
        let Received { call, message, .. } = Received::new(&self.0, request)?;
        let page = page(message.page_size, &message.page_token).map_err(failed)?;
        let (engine, caller) = (call.engine(), &call.caller);
        let listed = match message.name {
            None => skills::list(engine, caller, page).await,
            Some(name) => {
                let name = field("name", &name).map_err(failed)?;
                skills::versions(engine, caller, &name, page).await
            }
        };
        let List {
            items,
            next_page_token,
        } = listed.map_err(failed)?;
        let response = ListSkillsResponse {
            skills: items.into_iter().map(Into::into).collect(),
            next_page_token: next_page_token.unwrap_or_default(),
        };
        respond(&call, response)
    }

    async fn get_skill(&self, request: Request<GetSkillRequest>) -> Result<Response<Skill>, Status> {
        let Received { call, message, .. } = Received::new(&self.0, request)?;
        let name = field("name", &message.name).map_err(failed)?;
        let version = or_default("version", &message.version).map_err(failed)?;
        let found = skills::get(call.engine(), &call.caller, &name, &version).await;
        respond(&call, found.map_err(failed)?.into())
    }

    async fn delete_skill(
        &self,
        request: Request<DeleteSkillRequest>,
    ) -> Result<Response<DeleteSkillResponse>, Status> {
        let Received { call, message, .. } = Received::new(&self.0, request)?;
        let name = field("name", &message.name).map_err(failed)?;
        let version = field("version", &message.version).map_err(failed)?;
        let deleted = skills::delete(call.engine(), &call.caller, &name, &version).await;
        deleted.map_err(failed)?;
        respond(&call, DeleteSkillResponse {})
    }
}

type Parts = Streaming<RegisterSkillRequest>;

async fn next(parts: &mut Parts) -> Result<Option<Part>, Error> {
    let message = parts.message().await.map_err(|status| broken(&status))?;
    let empty = || Error::invalid("header, chunk: both missing; send one of them");
    message.map(|message| message.part.ok_or_else(empty)).transpose()
}

fn chunks(first: Option<Bytes>, parts: Parts) -> impl Stream<Item = Result<Bytes, Error>> {
    stream::try_unfold((first, parts), async |(first, mut parts)| {
        if let Some(chunk) = first {
            return Ok(Some((chunk, (None, parts))));
        }
        match next(&mut parts).await? {
            Some(Part::Chunk(chunk)) => Ok(Some((chunk, (None, parts)))),
            Some(Part::Header(_)) => Err(Error::invalid(
                "header: only in the first message; send chunks after it",
            )),
            None => Ok(None),
        }
    })
}

/// The error of a stream that broke: of its body, or of a message in it.
fn broken(status: &Status) -> Error {
    match std::error::Error::source(status) {
        Some(source) => read_error(source, || framework_error(status)),
        None => framework_error(status),
    }
}
