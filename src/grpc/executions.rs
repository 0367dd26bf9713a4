//! `ExecutionService`.

use std::sync::Arc;

use tonic::{Request, Response, Status};

use super::call::{Received, field, optional, page, respond, respond_always};
use super::events::{EventStream, LogStream, events, logs};
use super::messages::{self, Program};
use super::proto::execution_service_server::ExecutionService;
use super::proto::run_skill_stream_request::Program as StreamedProgram;
use super::proto::{
    CancelExecutionRequest, Execution, GetExecutionLogsRequest, GetExecutionRequest, ListExecutionsRequest,
    ListExecutionsResponse, RunCodeRequest, RunSkillRequest, RunSkillStreamRequest,
};
use super::status::failed;
use crate::api::{List, executions, wait_of};
use crate::error::Error;
use crate::execution::Omitted;
use crate::http::{ApiState, Call, ExecutionEvents, envelope, execute};
use crate::store::{ExecutionFilter, ExecutionSource};

pub(super) struct Executions(pub(super) Arc<ApiState>);

impl Executions {
    async fn run<T>(&self, request: Request<T>) -> Result<Response<Execution>, Status>
    where
        Program: TryFrom<T, Error = Error>,
    {
        let received = Received::new(&self.0, request)?;
        let Program { spec, mode, options } = received.message.try_into().map_err(failed)?;
        let call = received.call;
        let done = execute(&call, spec.into(), mode, options).await.map_err(failed)?;
        drop(received.held);
        let message = message(&call, &done, Omitted::default());
        Ok(respond_always(&call, message))
    }
}

#[tonic::async_trait]
impl ExecutionService for Executions {
    type RunSkillStreamStream = EventStream;
    type GetExecutionLogsStream = LogStream;

    async fn run_skill(&self, request: Request<RunSkillRequest>) -> Result<Response<Execution>, Status> {
        self.run(request).await
    }

    async fn run_code(&self, request: Request<RunCodeRequest>) -> Result<Response<Execution>, Status> {
        self.run(request).await
    }

    async fn run_skill_stream(
        &self,
        request: Request<RunSkillStreamRequest>,
    ) -> Result<Response<EventStream>, Status> {
        let received = Received::new(&self.0, request)?;
        let RunSkillStreamRequest { program, omit } = received.message;
        let omitted = messages::omitted(&omit).map_err(failed)?;
        let program = match program {
            Some(StreamedProgram::Skill(skill)) => Program::try_from(skill),
            Some(StreamedProgram::Code(code)) => Program::try_from(code),
            None => Err(Error::invalid("skill, code: both missing; send one of them")),
        };
        let Program { spec, mode, options } = program.map_err(failed)?;
        let run = ExecutionEvents::run(received.call, spec.into(), mode, options, received.held);
        let watched = run.await.map_err(failed)?.omitting(omitted);
        Ok(Response::new(events(
            watched,
            received.deadline,
            received.request_id,
        )))
    }

    async fn get_execution(
        &self,
        request: Request<GetExecutionRequest>,
    ) -> Result<Response<Execution>, Status> {
        let Received { call, message, .. } = Received::new(&self.0, request)?;
        let id = field("execution_id", &message.execution_id).map_err(failed)?;
        let omitted = messages::omitted(&message.omit).map_err(failed)?;
        let wait = message.wait.map(wait_of).transpose().map_err(failed)?;
        let (engine, caller) = (call.engine(), &call.caller);
        let found = match wait {
            None => executions::get_without(engine, caller, id, omitted).await,
            wait => executions::get(engine, caller, id, wait).await,
        };
        let found = found.map_err(failed)?;
        respond(&call, self::message(&call, &found, omitted))
    }

    async fn get_execution_logs(
        &self,
        request: Request<GetExecutionLogsRequest>,
    ) -> Result<Response<LogStream>, Status> {
        let received = Received::new(&self.0, request)?;
        logs(received).await.map(Response::new).map_err(failed)
    }

    async fn list_executions(
        &self,
        request: Request<ListExecutionsRequest>,
    ) -> Result<Response<ListExecutionsResponse>, Status> {
        let Received { call, message, .. } = Received::new(&self.0, request)?;
        let page = page(message.page_size, &message.page_token).map_err(failed)?;
        let filter = filter(message).map_err(failed)?;
        let listed = executions::list(call.engine(), &call.caller, filter, page).await;
        let List {
            items,
            next_page_token,
        } = listed.map_err(failed)?;
        let response = ListExecutionsResponse {
            executions: items.into_iter().map(Into::into).collect(),
            next_page_token: next_page_token.unwrap_or_default(),
        };
        respond(&call, response)
    }

    async fn cancel_execution(
        &self,
        request: Request<CancelExecutionRequest>,
    ) -> Result<Response<Execution>, Status> {
        let Received { call, message, .. } = Received::new(&self.0, request)?;
        let id = field("execution_id", &message.execution_id).map_err(failed)?;
        let ended = executions::cancel(call.engine(), &call.caller, id)
            .await
            .map_err(failed)?;
        respond(&call, self::message(&call, &ended, Omitted::default()))
    }
}

pub(super) fn message(call: &Call, execution: &crate::execution::Execution, omitted: Omitted) -> Execution {
    let logs = execution.outcome.as_ref().map(|outcome| &outcome.logs);
    messages::execution(
        envelope(call, execution).without(omitted),
        logs.filter(|_| !omitted.logs),
    )
}

fn filter(message: ListExecutionsRequest) -> Result<ExecutionFilter, Error> {
    let source = match (optional("skill", message.skill)?, message.code) {
        (Some(_), true) => {
            return Err(Error::invalid(
                "code: cannot be used with `skill`; omit one of them",
            ));
        }
        (skill, false) => skill.map(ExecutionSource::Skill),
        (None, true) => Some(ExecutionSource::Code),
    };
    let statuses = message.statuses.into_iter().map(messages::status);
    let time = |name: &str, text: Option<String>| {
        let parsed = text.map(|text| text.parse()).transpose();
        parsed.map_err(|_| {
            Error::invalid(format!(
                "{name}: not a time; write date, time and zone, like 2026-01-31T12:00:00Z"
            ))
        })
    };
    Ok(ExecutionFilter {
        statuses: statuses.collect::<Result<_, _>>()?,
        source,
        key: optional("key", message.key)?,
        since: time("since", message.since)?,
        until: time("until", message.until)?,
    })
}
