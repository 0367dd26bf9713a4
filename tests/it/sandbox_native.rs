//! The native sandbox on this kernel: what differs from containers.

use skillbox::execution::Status;

use crate::outcomes::output;
use crate::world::{Backend, World};

#[tokio::test]
async fn runs_a_program_and_reports_its_usage() {
    let Some(world) = World::on(Backend::Native).await else {
        return;
    };
    let outcome = world
        .python("import json, os; json.dump({'pid': os.getpid(), 'root': sorted(os.listdir('/'))}, open(os.environ['SANDBOX_OUTPUT'], 'w'))")
        .await;
    assert_eq!(outcome.status, Status::Success, "{outcome:?}");
    println!("{:#} {:?} {:?}", output(&outcome), outcome.usage, outcome.timings);
}
