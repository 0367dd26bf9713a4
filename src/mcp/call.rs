//! Runs executions for tool calls: with progress from log lines, and cancelled with the call.

use rmcp::model::{ProgressNotificationParam, ProgressToken, RequestMetaObject};
use rmcp::service::{Peer, RequestContext, RoleServer};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{Handler, McpClient};
use crate::api::executions;
use crate::engine::{OnDisconnect, RunOptions, RunSpec, Subscription};
use crate::error::Error;
use crate::execution::{Execution, ExecutionKey, TranscriptEvent};
use crate::ids::IdempotencyKey;
use crate::limits;
use crate::telemetry::field;

/// Names a call that a client may repeat, as the header `Idempotency-Key` of the REST API does.
const IDEMPOTENCY_KEY: &str = "skillbox/idempotency-key";

/// What a call reports to, and what ends it.
pub(super) struct CallContext {
    peer: Peer<RoleServer>,
    progress: Option<ProgressToken>,
    /// The client disconnected, or cancelled on this connection.
    ended: CancellationToken,
    /// The client cancelled by another message.
    cancelled: CancellationToken,
    meta: RequestMetaObject,
}

impl CallContext {
    pub(super) fn of(handler: &Handler, context: RequestContext<RoleServer>) -> Self {
        let cancel = handler.cancel.as_ref();
        Self {
            progress: context.meta.get_progress_token(),
            cancelled: cancel.map(|cancel| cancel.token.clone()).unwrap_or_default(),
            peer: context.peer,
            ended: context.ct,
            meta: context.meta,
        }
    }
}

impl McpClient {
    /// Runs a request to its end. `None` if the call was cancelled, and with it the execution.
    pub(super) async fn run(&self, spec: RunSpec, context: CallContext) -> Result<Option<Execution>, Error> {
        let options = RunOptions {
            idempotency_key: idempotency_key(&context.meta)?,
            // An answer without a receiver cannot be fetched later.
            on_disconnect: OnDisconnect::Cancel,
            key: Some(ExecutionKey {
                id: self.caller.key(),
                name: self.caller.key_name().to_owned(),
            }),
        };
        let (watcher, watched) = oneshot::channel();
        let watcher = context.progress.is_some().then_some(watcher);
        let mut run = Box::pin(executions::run(
            &self.engine,
            &self.caller,
            spec.into(),
            options,
            watcher,
        ));
        let mut reports = std::pin::pin!(report(&context, watched));
        let mut reported = context.progress.is_none();
        let done = loop {
            tokio::select! {
                biased;
                () = context.ended.cancelled() => return Ok(None),
                () = context.cancelled.cancelled() => return Ok(None),
                done = &mut run => break done?,
                () = &mut reports, if !reported => reported = true,
            }
        };
        if !reported {
            // A client that does not read must not keep the result.
            let _ = tokio::time::timeout(limits::MCP_PROGRESS_FLUSH_MAX, reports).await;
        }
        record(&done);
        Ok(Some(done))
    }
}

/// Adds the execution to the span of the request.
fn record(execution: &Execution) {
    let span = tracing::Span::current();
    span.record(field::EXECUTION_ID, tracing::field::display(execution.new.id));
    span.record(
        field::SKILL,
        execution.new.skill.as_ref().map(tracing::field::display),
    );
    span.record(field::OUTCOME, execution.status.as_str());
}

fn idempotency_key(meta: &RequestMetaObject) -> Result<Option<IdempotencyKey>, Error> {
    let Some(value) = meta.get(IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    let key = value.as_str().unwrap_or_default().parse();
    key.map(Some)
        .map_err(|rule| Error::invalid(format!("_meta.{IDEMPOTENCY_KEY}: {rule}")))
}

/// Sends a notification for each line that the program logs.
async fn report(context: &CallContext, watched: oneshot::Receiver<Subscription>) {
    let (Some(token), Ok(mut events)) = (context.progress.clone(), watched.await) else {
        return;
    };
    let mut progress = 0.0;
    while let Some(event) = events.next().await {
        let message = match event {
            TranscriptEvent::Logged(line) => line.message,
            TranscriptEvent::Status(status) => status.to_string(),
            TranscriptEvent::Printed { .. } | TranscriptEvent::Result(_) | TranscriptEvent::End { .. } => {
                continue;
            }
        };
        progress += 1.0;
        let sent = ProgressNotificationParam::new(token.clone(), progress).with_message(message);
        if context.peer.notify_progress(sent).await.is_err() {
            return;
        }
    }
}
