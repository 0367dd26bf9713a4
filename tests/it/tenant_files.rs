//! Files that sandboxes share carry neither locks nor file events between tenants.

use skillbox::auth::{Scope, Scopes};
use skillbox::engine::{NewKey, RunSpec};
use skillbox::execution::Status;
use skillbox::ids::Tenant;
use skillbox::skill::{Language, Selector, SkillRef};

use super::BACKEND;
use crate::outcomes::{output, stderr};
use crate::world::{World, archive};

/// Locks the skill's files for two seconds, and says whether another program held them.
const LOCKER: &str = "import fcntl, json, os, time
got = []
for folder, _, names in os.walk('/skills/probe'):
    for path in [folder] + [os.path.join(folder, name) for name in names]:
        try:
            fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
            got.append(True)
        except BlockingIOError:
            got.append(False)
time.sleep(2)
json.dump({'paths': len(got), 'free': all(got)}, open(os.environ['SANDBOX_OUTPUT'], 'w'))
";

async fn free(world: &World, tenant: &Tenant) -> bool {
    let skill = SkillRef {
        name: "probe".parse().unwrap(),
        selector: Selector::Latest,
    };
    let request = RunSpec {
        skill: Some(skill),
        ..RunSpec::default()
    };
    let execution = world.runs().run(tenant, request).await.unwrap();
    let outcome = execution.outcome.unwrap();
    assert_eq!(outcome.status, Status::Success, "{}", stderr(&outcome));
    let output = output(&outcome);
    assert!(output["paths"].as_u64().unwrap() >= 3, "{output}");
    output["free"].as_bool().unwrap()
}

/// T-19. Two runs of one tenant show that the locks are real.
#[tokio::test(flavor = "multi_thread")]
async fn locks_on_skill_files_are_invisible_to_other_tenants() {
    let Some(world) = World::on(BACKEND).await else {
        return;
    };
    let new = NewKey {
        name: "other".to_owned(),
        scopes: Scopes::new([Scope::Run, Scope::Skills]),
        expires_at: None,
    };
    let other: Tenant = "other".parse().unwrap();
    world.keys().create(other.clone(), new).await.unwrap();
    for tenant in [world.tenant(), &other] {
        let zip = archive(Language::Python, "", LOCKER);
        world.skills().publish(tenant, zip, None).await.unwrap();
        assert!(free(&world, tenant).await, "{tenant} alone");
    }
    let (one, same) = tokio::join!(free(&world, &other), free(&world, &other));
    assert_ne!(one, same, "two runs of one tenant: exactly one gets the locks");
    let (one, another) = tokio::join!(free(&world, world.tenant()), free(&world, &other));
    assert!(one && another, "a tenant's lock was visible to another tenant");
}
