//! What the guest is told at the start of a job.

use std::time::Duration;

use crate::guest::wire::{self, Caps, Start, Workspace};
use crate::limits;
use crate::sandbox::{Collect, Egress, Job, JobKind};

pub(super) fn start_command(job: &Job) -> Start {
    let (sandbox, program) = (&job.sandbox, &job.program);
    Start {
        version: wire::VERSION,
        skill: sandbox.skill.as_ref().map(|skill| skill.name.to_string()),
        argv: program.argv.clone(),
        env: program.env.variables().to_vec(),
        workspace: match program.collect {
            Collect::Out => Workspace::Scratch,
            Collect::Workspace => Workspace::Results,
            Collect::RequestWorkspace { args_from } => Workspace::RequestResults { args_from },
        },
        timeout_ms: u64::try_from(sandbox.limits.timeout.as_millis()).unwrap_or(u64::MAX),
        egress: job.kind.egress().map(|_| Egress::PORT),
        caps: caps(job),
    }
}

/// Limits on received data.
pub(super) fn caps(job: &Job) -> Caps {
    let caps = Caps {
        output_bytes: limits::OUTPUT_BYTES_MAX,
        results_bytes: limits::RESULTS_BYTES_MAX,
        log_bytes: limits::LOG_BYTES_MAX,
        log_lines_bytes: limits::LOG_LINES_BYTES_MAX,
        files: limits::FILES_MAX,
        files_bytes: limits::FILES_BYTES_MAX,
        files_depth: limits::FILES_DEPTH_MAX,
        path_bytes: limits::FILE_PATH_BYTES_MAX,
        paths_bytes: limits::FILE_PATHS_BYTES_MAX,
        skipped_named: limits::SKIPPED_NAMED_MAX,
        blobs: limits::OUTPUT_BLOBS_MAX,
        blobs_bytes: limits::OUTPUT_BLOBS_BYTES_MAX,
    };
    match job.kind {
        JobKind::Run => caps,
        JobKind::Build { .. } => Caps {
            files: limits::PACKAGES_FILES_MAX,
            // As much as fits into the sandbox: the installer decides what it returns.
            files_bytes: limits::PACKAGES_BYTES_MAX.min(job.sandbox.limits.sandbox_bytes),
            path_bytes: limits::ARCHIVE_PATH_BYTES_MAX,
            paths_bytes: limits::PACKAGES_PATHS_BYTES_MAX,
            blobs: 0,
            ..caps
        },
    }
}

pub(super) fn collect_max(job: &Job) -> Duration {
    match job.kind {
        JobKind::Run => limits::COLLECT_MAX,
        JobKind::Build { .. } => limits::PACKAGES_COLLECT_MAX,
    }
}
