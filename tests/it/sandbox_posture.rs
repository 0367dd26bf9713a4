//! What the engine says of a live sandbox, against the reviewed posture; and what images and manifests may not change of it.

use std::collections::HashMap;

use bollard::models::{ContainerConfig, HealthConfig};
use bollard::query_parameters::{CommitContainerOptionsBuilder, RemoveContainerOptionsBuilder};
use serde_json::{Map, Value, json};
use skillbox::error::Code;
use skillbox::execution::Status;
use skillbox::sandbox::seccomp;
use skillbox::skill::Language;

use crate::docker::sandbox_inputs::environment_names;
use crate::sandbox_oracles::{Attack, ObservedWorld, connect};
use crate::world::{Backend, IMAGE_WITH_SCRATCH, IMAGE_WITH_VOLUME, IMAGE_WITH_WISHES, images};

/// The posture as it was reviewed: the snapshot of the pure function that describes a container.
const REVIEWED: &str = include_str!(
    "../../src/sandbox/docker/snapshots/skillbox__sandbox__docker__policy__tests__the_container_is_the_reviewed_posture.snap"
);

/// The reviewed posture with the values that differ from run to run, taken from where they come from.
async fn expected(watched: &ObservedWorld, image: &str, live: &Value) -> Value {
    let mut posture: Value = serde_json::from_str(REVIEWED.splitn(3, "---").last().unwrap()).unwrap();
    let version = watched.engine().version().await.unwrap();
    let profile = seccomp::docker_profile(&version.arch.unwrap()).to_string();
    posture["HostConfig"]["SecurityOpt"][1] = format!("seccomp={profile}").into();
    posture["HostConfig"]["VolumesFrom"] = live["HostConfig"]["VolumesFrom"].clone();
    posture["HostConfig"]["LogConfig"]["Config"] = json!({});
    posture["HostConfig"]["RestartPolicy"]["MaximumRetryCount"] = 0.into();
    posture["Image"] = image.into();
    // The engine adds the image's own variables; PID 1 is static and hands none of them on.
    let inspected = watched.engine().inspect_image(image).await.unwrap();
    posture["Env"] = json!(inspected.config.unwrap().env);
    let instance = watched.world.engine.instance().to_string();
    posture["Labels"]["dev.skillbox.instance"] = instance.into();
    for label in ["created", "expires", "execution"] {
        let label = format!("dev.skillbox.{label}");
        posture["Labels"][&label] = live["Config"]["Labels"][&label].clone();
    }
    posture
}

/// What an engine fills in where a container says nothing.
fn engine_defaults() -> Map<String, Value> {
    let defaults = json!({
        "Runtime": "runc",
        "ConsoleSize": [0, 0],
        "MemorySwappiness": -1,
    });
    defaults.as_object().unwrap().clone()
}

/// Whether a value wishes for nothing.
fn is_inert(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(wish) => !wish,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Where a live container differs from the posture. A field that the posture does not speak of must wish for nothing.
fn differences(expected: &Value, live: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut posture = expected.as_object().unwrap().clone();
    let host = posture.remove("HostConfig").unwrap();
    let ours = [("Config", Value::Object(posture)), ("HostConfig", host)];
    for (part, expected) in ours {
        let expected = expected.as_object().unwrap();
        for (key, value) in live[part].as_object().unwrap() {
            let agrees = match expected.get(key) {
                Some(wanted) => value == wanted || (is_inert(value) && is_inert(wanted)),
                None => is_inert(value) || engine_defaults().get(key) == Some(value),
            };
            if !agrees {
                found.push(format!("{part}.{key} is {value}, not {:?}", expected.get(key)));
            }
        }
        let missing = expected
            .iter()
            .filter(|(key, value)| live[part].get(key).is_none() && !is_inert(value));
        found.extend(missing.map(|(key, _)| format!("{part}.{key} is missing")));
    }
    found.extend(mount_differences(live));
    found
}

/// Only our keepers' volumes are mounted, only where they belong, and none for writing.
fn mount_differences(live: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mounts = live["Mounts"].as_array().cloned().unwrap_or_default();
    let mut places: Vec<_> = mounts
        .iter()
        .map(|mount| mount["Destination"].as_str().unwrap_or("nowhere"))
        .collect();
    places.sort_unstable();
    if places != ["/.skillbox", "/skills/probe"] {
        found.push(format!("Mounts are at {places:?}"));
    }
    let writable = mounts
        .iter()
        .filter(|mount| mount["RW"] != json!(false) || mount["Type"] != "volume");
    found.extend(writable.map(|mount| format!("Mounts has {mount}")));
    let keepers = live["HostConfig"]["VolumesFrom"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let named = |index: usize, prefix: &str| {
        keepers
            .get(index)
            .and_then(Value::as_str)
            .is_some_and(|name| name.starts_with(prefix) && name.ends_with(":ro"))
    };
    if keepers.len() != 2 || !named(0, "skillbox-guest-") || !named(1, "skillbox-skill-") {
        found.push(format!("HostConfig.VolumesFrom is {keepers:?}"));
    }
    found
}

/// Runs a program that waits, inspects its container from outside, then cancels it.
async fn inspect_live(watched: &ObservedWorld, attack: Attack) -> Value {
    let look = async {
        let id = watched.started().await;
        let live = watched.engine().inspect_container(&id, None).await.unwrap();
        let live = serde_json::to_value(live).unwrap();
        let execution = live["Config"]["Labels"]["dev.skillbox.execution"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        let cancelled = watched
            .world
            .executions()
            .cancel(watched.world.tenant(), execution)
            .await
            .unwrap();
        assert_eq!(cancelled.status, Status::Cancelled);
        live
    };
    let (outcome, live) = tokio::join!(watched.run(attack), look);
    assert_eq!(outcome.status, Status::Cancelled, "{:?}", outcome.error);
    live
}

/// S-33.
#[tokio::test]
async fn live_sandbox_matches_the_reviewed_posture() {
    let Some(watched) = ObservedWorld::on(Backend::Docker).await else {
        return;
    };
    let live = inspect_live(&watched, Attack::python("signal.pause()")).await;
    let expected = expected(&watched, &images().python, &live).await;
    assert_eq!(differences(&expected, &live), Vec::<String>::new());
    assert_eq!(
        (&live["State"]["Running"], &live["HostConfig"]["Memory"]),
        (&json!(true), &json!(512 << 20))
    );
    let networks = live["NetworkSettings"]["Networks"]
        .as_object()
        .map_or(0, Map::len);
    assert_eq!(networks, 0, "{:#}", live["NetworkSettings"]);

    // The comparison itself: a change of any one field is found.
    for part in ["Config", "HostConfig"] {
        for (key, value) in live[part].as_object().unwrap() {
            let mut changed = live.clone();
            changed[part][key] = mutated(value);
            assert!(
                !differences(&expected, &changed).is_empty(),
                "a change of {part}.{key} is not seen"
            );
        }
    }
    for (field, value) in [
        ("RW", json!(true)),
        ("Type", json!("bind")),
        ("Destination", json!("/etc")),
    ] {
        let mut changed = live.clone();
        changed["Mounts"][0][field] = value;
        assert!(
            !differences(&expected, &changed).is_empty(),
            "a change of Mounts.{field} is not seen"
        );
    }
    watched.close().await;
}

/// The same field with another wish.
fn mutated(value: &Value) -> Value {
    match value {
        Value::Null => json!("wish"),
        Value::Bool(wish) => json!(!wish),
        Value::Number(number) => json!(number.as_f64().unwrap() + 1.0),
        Value::String(text) => json!(format!("{text}x")),
        Value::Array(items) => Value::Array(items.iter().cloned().chain([json!("wish")]).collect()),
        Value::Object(fields) => {
            let mut fields = fields.clone();
            fields.insert("wish".to_owned(), json!(true));
            Value::Object(fields)
        }
    }
}

/// Makes an image of bash that says this of itself, once.
async fn make_image(name: &str, says: ContainerConfig) {
    let docker = connect().await;
    if docker.inspect_image(name).await.is_ok() {
        return;
    }
    let base = bollard::models::ContainerCreateBody {
        image: Some(images().bash),
        ..Default::default()
    };
    let made = docker.create_container(None, base).await.unwrap();
    let (repo, tag) = name.split_once(':').unwrap();
    let options = CommitContainerOptionsBuilder::default()
        .container(&made.id)
        .repo(repo)
        .tag(tag)
        .build();
    docker.commit_container(options, says).await.unwrap();
    let options = RemoveContainerOptionsBuilder::default()
        .force(true)
        .v(true)
        .build();
    docker.remove_container(&made.id, Some(options)).await.unwrap();
}

/// All that an image can wish for.
fn wishes() -> ContainerConfig {
    let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
    ContainerConfig {
        user: Some("root".to_owned()),
        entrypoint: words(&["/bin/false"]),
        cmd: words(&["wished"]),
        env: words(&["LD_PRELOAD=/x", "BASH_ENV=/x", "PATH=/evil", "WISH=1"]),
        working_dir: Some("/etc".to_owned()),
        stop_signal: Some("0".to_owned()),
        exposed_ports: words(&["2375/tcp"]),
        labels: Some(HashMap::from([(
            "dev.skillbox.role".to_owned(),
            "keeper".to_owned(),
        )])),
        healthcheck: Some(HealthConfig {
            test: words(&["CMD-SHELL", "touch /workspace/healthy"]),
            interval: Some(1_000_000),
            ..Default::default()
        }),
        ..ContainerConfig::default()
    }
}

/// S-34: what the image says of itself changes nothing.
#[tokio::test]
async fn image_settings_do_not_affect_the_posture() {
    let Some(watched) = ObservedWorld::on(Backend::Docker).await else {
        return;
    };
    make_image(IMAGE_WITH_WISHES, wishes()).await;
    let line = format!("image: {IMAGE_WITH_WISHES}\n");
    let program = r#"printf '{"env": "%s", "id": "%s", "first": "%s", "healthy": "%s"}' "$(env | cut -d= -f1 | sort | tr '\n' ' ')" "$(id -u):$(id -g)" "$(tr '\0' ' ' </proc/1/cmdline)" "$(ls)" >$SANDBOX_OUTPUT"#;
    let seen = watched
        .verdicts(Attack::plain(Language::Bash, program).front_matter(&line))
        .await;
    assert_eq!(
        (&seen["id"], &seen["first"], &seen["healthy"]),
        (
            &json!("65534:65534"),
            &json!("/.skillbox/init sandbox-init "),
            &json!("")
        )
    );
    assert_eq!(seen["env"], environment_names().join(" ") + " ");

    let Some(watched_again) = ObservedWorld::on(Backend::Docker).await else {
        return;
    };
    let waiting = Attack::plain(Language::Bash, "while :; do read -rt 60 <> <(:); done").front_matter(&line);
    let mut live = inspect_live(&watched_again, waiting).await;
    // Ports that are exposed and never published are a note; with no network there is nothing behind them.
    let exposed = live["Config"].as_object_mut().unwrap().remove("ExposedPorts");
    assert_eq!(exposed, Some(json!({ "2375/tcp": {} })));
    // Switched off, it has no interval to keep either.
    assert_eq!(live["Config"]["Healthcheck"]["Test"], json!(["NONE"]));
    live["Config"]["Healthcheck"]
        .as_object_mut()
        .unwrap()
        .retain(|key, _| key == "Test");
    let expected = expected(&watched_again, IMAGE_WITH_WISHES, &live).await;
    assert_eq!(differences(&expected, &live), Vec::<String>::new());
    watched_again.close().await;
    watched.close().await;
}

/// S-34: one that brings volumes is refused before there is a container.
#[tokio::test]
async fn rejects_an_image_with_volumes() {
    let Some(watched) = ObservedWorld::on(Backend::Docker).await else {
        return;
    };
    if connect().await.inspect_image(IMAGE_WITH_VOLUME).await.is_err() {
        return crate::world::missing("docker", "tests/with-engine.sh makes the image with a volume");
    }
    let line = format!("image: {IMAGE_WITH_VOLUME}\n");
    let refused = watched
        .try_execution(Attack::plain(Language::Bash, "true").front_matter(&line))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::SandboxUnavailable);
    assert!(refused.to_string().contains("/data"), "{refused}");
    watched.run(Attack::plain(Language::Bash, "true")).await;
    assert_eq!(watched.has_made().await, 1);
    watched.close().await;
}

/// S-34: where a sandbox has scratch, an image's volume is nowhere, not even in the keeper that is made from the image.
#[tokio::test]
async fn image_volumes_at_scratch_paths_are_never_created() {
    let Some(watched) = ObservedWorld::on(Backend::Docker).await else {
        return;
    };
    let says = ContainerConfig {
        volumes: Some(vec!["/tmp".to_owned(), "/workspace".to_owned()]),
        ..ContainerConfig::default()
    };
    make_image(IMAGE_WITH_SCRATCH, says).await;
    let line = format!("image: {IMAGE_WITH_SCRATCH}\n");
    // Of its own, so that no keeper of it is there yet.
    let unseen = format!("# {}\nsleep 60", watched.world.engine.instance());
    let live = inspect_live(
        &watched,
        Attack::plain(Language::Bash, &unseen).front_matter(&line),
    )
    .await;
    assert_eq!(mount_differences(&live), Vec::<String>::new());
    watched.close().await;
}

/// S-35.
#[tokio::test]
async fn runs_images_with_exactly_allowed_names_only() {
    let Some(watched) = ObservedWorld::on(Backend::Docker).await else {
        return;
    };
    let image = images().bash;
    let (name, tag) = image.rsplit_once(':').unwrap();
    let tricks = [
        image.to_uppercase(),
        format!("docker.io/library/{image}"),
        format!("library/{image}"),
        format!("localhost/{image}"),
        format!("{name}@sha256:{}", "0".repeat(64)),
        format!("{image}@sha256:{}", "0".repeat(64)),
        format!(r"{image}\0"),
        format!("{image} --privileged"),
        name.to_owned(),
        format!("{name}:{tag}0"),
        format!("{name}:"),
        image.replace('a', "\u{430}"),
        format!("{image}\u{200b}"),
        "sha256:".to_owned() + &"0".repeat(64),
        "../../etc".to_owned(),
        "-v/:/host".to_owned(),
        format!("{image} "),
        format!(" {image}"),
        format!(r"{image}\n"),
        format!(r"{image}\t"),
    ];
    for trick in tricks {
        let line = format!("image: \"{trick}\"\n");
        let refused = watched
            .try_execution(Attack::plain(Language::Bash, "true").front_matter(&line))
            .await;
        assert_eq!(refused.unwrap_err().code(), Code::Invalid, "{trick:?}");
    }
    assert_eq!(watched.has_made().await, 0);
    watched.close().await;
}
