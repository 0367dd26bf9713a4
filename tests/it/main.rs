//! All tests that need more than one room, in one binary: it is linked once.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy sees tests only in functions marked so"
)]

mod attempts;
mod baseline;
mod canaries;
mod cli_blobs;
mod cli_dev;
mod cli_docs;
mod cli_hostile;
mod cli_local;
#[cfg(target_os = "linux")]
mod cli_mcp;
mod cli_mistakes;
#[cfg(unix)]
mod cli_open;
mod cli_push;
mod cli_remote;
mod cli_requirements;
#[cfg(target_os = "linux")]
mod cli_rerun;
mod cli_results;
mod cli_run;
mod cli_scripts;
mod cli_secrets;
mod cli_serve;
mod cli_shell;
mod cli_start;
mod cli_stdin;
mod cli_tools;
mod cli_watch;
mod cli_webhooks;
#[cfg(target_os = "linux")]
mod dashboard;
mod docker;
mod engine;
#[cfg(unix)]
mod folders;
#[cfg(target_os = "linux")]
mod full_disk;
#[cfg(unix)]
mod get_script;
mod grpc;
mod gvisor;
#[cfg(target_os = "linux")]
mod hosts;
mod http;
mod images;
mod index;
#[cfg(unix)]
mod install_script;
mod lifecycle;
#[cfg(unix)]
mod lost_engine;
#[cfg(target_os = "linux")]
mod mcp;
#[cfg(target_os = "linux")]
#[expect(clippy::duplicate_mod, reason = "the same promises, on another backend")]
mod native;
mod native_degraded;
#[cfg(target_os = "linux")]
mod native_fork;
#[cfg(target_os = "linux")]
mod native_host_folders;
#[cfg(target_os = "linux")]
mod native_inodes;
#[cfg(target_os = "linux")]
mod native_lifecycle;
#[cfg(target_os = "linux")]
mod native_memory;
#[cfg(target_os = "linux")]
mod native_mutation;
#[cfg(target_os = "linux")]
mod native_soak;
#[cfg(target_os = "linux")]
mod native_user_limits;
#[cfg(target_os = "linux")]
mod observed;
#[cfg(target_os = "linux")]
mod open_files;
mod ordinary;
mod outcomes;
mod packages;
#[cfg(unix)]
mod proxies;
#[cfg(unix)]
mod published_front;
#[cfg(target_os = "linux")]
mod queue;
#[cfg(target_os = "linux")]
mod queue_bounds;
mod receiver;
mod retagged_image;
mod run_code_packages;
#[cfg(target_os = "linux")]
mod sandbox_auto;
mod sandbox_contract;
#[cfg(target_os = "linux")]
mod sandbox_native;
mod sandbox_oracles;
mod sandbox_posture;
#[cfg(unix)]
mod scripted_model;
mod sdk;
mod server;
mod storage_failure;
#[cfg(unix)]
mod terminal;
#[cfg(unix)]
mod terminal_screens;
mod terminal_views;
#[cfg(unix)]
mod troubleshooting;
#[cfg(unix)]
mod tutorials;
#[cfg(target_os = "linux")]
mod two_servers;
#[cfg(target_os = "linux")]
mod watched_memory;
mod watching;
mod webhooks;
mod webhooks_hostile;
mod world;
