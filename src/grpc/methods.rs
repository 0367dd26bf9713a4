//! All methods, with their entries in the access matrix.

use crate::api;
use crate::http::Access;
use crate::limits;

pub(super) struct Method {
    pub(super) path: &'static str,
    pub(super) service: ServiceName,
    pub(super) access: Access,
    pub(super) request: RequestForm,
}

#[derive(Clone, Copy)]
pub(super) enum ServiceName {
    Execution,
    Skill,
    Health,
}

/// What a client sends.
#[derive(Clone, Copy)]
pub(super) enum RequestForm {
    /// One message of at most this size.
    Message { bytes_max: u64 },
    /// A stream of messages.
    Stream,
}

const SMALL: RequestForm = RequestForm::Message {
    bytes_max: limits::BODY_BYTES_MAX,
};
const PROGRAM: RequestForm = RequestForm::Message {
    bytes_max: limits::EXECUTION_BODY_BYTES_MAX,
};

/// Service, name, access, request.
macro_rules! methods {
    ($($service:ident $path:literal $access:expr, $request:expr;)*) => {
        &[$(Method { path: $path, service: ServiceName::$service, access: $access, request: $request }),*]
    };
}

pub(super) const METHODS: &[Method] = methods! {
    Execution "/skillbox.v1.ExecutionService/RunSkill" Access::Key(api::RUN), PROGRAM;
    Execution "/skillbox.v1.ExecutionService/RunSkillStream" Access::Key(api::RUN), PROGRAM;
    Execution "/skillbox.v1.ExecutionService/RunCode" Access::Key(api::RUN), PROGRAM;
    Execution "/skillbox.v1.ExecutionService/GetExecution" Access::Key(api::RUN), SMALL;
    Execution "/skillbox.v1.ExecutionService/GetExecutionLogs" Access::Key(api::RUN), SMALL;
    Execution "/skillbox.v1.ExecutionService/ListExecutions" Access::Key(api::RUN), SMALL;
    Execution "/skillbox.v1.ExecutionService/CancelExecution" Access::Key(api::RUN), SMALL;
    Skill "/skillbox.v1.SkillService/RegisterSkill" Access::Key(api::SKILLS), RequestForm::Stream;
    Skill "/skillbox.v1.SkillService/ListSkills" Access::Key(api::RUN_OR_SKILLS), SMALL;
    Skill "/skillbox.v1.SkillService/GetSkill" Access::Key(api::RUN_OR_SKILLS), SMALL;
    Skill "/skillbox.v1.SkillService/DeleteSkill" Access::Key(api::SKILLS), SMALL;
    Health "/grpc.health.v1.Health/Check" Access::Open, SMALL;
    Health "/grpc.health.v1.Health/Watch" Access::Open, SMALL;
};

/// The method at this path.
pub(super) fn method(path: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.path == path)
}
