//! What a tenant uses, and its quotas.

use serde::Serialize;

use super::{RUN, require};
use crate::auth::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::limits;

/// What the tenant of the key uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = TenantUsage)]
pub struct UsageInfo {
    pub storage: StorageUse,
    pub blobs: BlobUse,
    pub secrets: SecretUse,
    pub packages: PackageUse,
    pub queue: QueueUse,
    pub last_24h: DayUse,
}

/// Archives of skills, and files, output and logs of executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct StorageUse {
    /// Bytes.
    pub used: u64,
    /// Maximum in bytes; `null` for none.
    #[schema(required)]
    pub limit: Option<u64>,
}

/// Blobs, until they are deleted after their expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct BlobUse {
    /// Bytes.
    pub used: u64,
    /// Maximum in bytes.
    pub limit: u64,
    /// Number of blobs.
    pub count: u64,
}

/// Secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct SecretUse {
    /// Number of secrets.
    pub count: u64,
    /// Maximum number.
    pub limit: u64,
}

/// Installed packages, which share one limit of all tenants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct PackageUse {
    /// Bytes.
    pub used: u64,
}

/// Executions that wait in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct QueueUse {
    /// Requests with `mode: async` that wait.
    pub waiting: usize,
    /// Maximum number.
    pub limit: usize,
}

/// Executions that ended within the last 24 hours, to five minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct DayUse {
    /// Number of executions.
    pub executions: u64,
    /// CPU time in milliseconds; without executions of earlier releases.
    pub cpu_ms: u64,
}

/// What the caller's tenant uses.
pub async fn show(engine: &Engine, caller: &Caller) -> Result<UsageInfo, Error> {
    require(caller, RUN)?;
    let usage = engine.overview().usage(caller.tenant()).await?;
    let settings = engine.settings();
    Ok(UsageInfo {
        storage: StorageUse {
            used: usage.storage,
            limit: settings.tenant_storage,
        },
        blobs: BlobUse {
            used: usage.blobs.bytes,
            limit: settings.blobs.quota_bytes,
            count: usage.blobs.count,
        },
        secrets: SecretUse {
            count: usage.secrets,
            limit: limits::SECRETS_MAX.into(),
        },
        packages: PackageUse { used: usage.packages },
        queue: QueueUse {
            waiting: usage.queued,
            limit: settings.async_queue,
        },
        last_24h: DayUse {
            executions: usage.day.outcomes.total(),
            cpu_ms: usage.day.cpu_ms,
        },
    })
}
