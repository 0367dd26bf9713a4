//! A tag that is moved to another image while the server runs.

use std::time::{Duration, Instant};

use bollard::models::{ContainerConfig, ContainerCreateBody};
use bollard::query_parameters::{
    CommitContainerOptionsBuilder, RemoveContainerOptionsBuilder, RemoveImageOptionsBuilder,
    TagImageOptionsBuilder,
};
use skillbox::engine::RunSpec;
use skillbox::execution::Status;

use crate::index::OwnIndex;
use crate::sandbox_oracles::connect;
use crate::world::{Backend, IMAGE_THAT_MOVES, World, images, missing, zip_of};

/// How long an old image may stand.
const SOON: Duration = Duration::from_secs(40);

/// Makes the tag mean the Python image with another label.
async fn move_tag() {
    let docker = connect().await;
    let base = ContainerCreateBody {
        image: Some(images().python),
        ..Default::default()
    };
    let made = docker.create_container(None, base).await.unwrap();
    let (repo, tag) = IMAGE_THAT_MOVES.split_once(':').unwrap();
    let options = CommitContainerOptionsBuilder::default()
        .container(&made.id)
        .repo(repo)
        .tag(tag)
        .build();
    docker
        .commit_container(options, ContainerConfig::default())
        .await
        .unwrap();
    let options = RemoveContainerOptionsBuilder::default()
        .force(true)
        .v(true)
        .build();
    docker.remove_container(&made.id, Some(options)).await.unwrap();
}

/// P2: packages of one image are not mounted into another.
#[tokio::test]
async fn moved_image_tag_reinstalls_packages() {
    let folder = tempfile::tempdir().unwrap();
    let index = OwnIndex::open(folder.path());
    let Some(world) = World::with_packages(Backend::Docker, |data| index.settings(data)).await else {
        return;
    };
    if !index.offer_pip() {
        return missing("packages", "there is no pip to be had for images without one");
    }
    index.wheel("alpha", &[("alpha.py", "")]);
    let docker = connect().await;
    let (repo, tag) = IMAGE_THAT_MOVES.split_once(':').unwrap();
    let options = TagImageOptionsBuilder::default().repo(repo).tag(tag).build();
    docker.tag_image(&images().python, Some(options)).await.unwrap();
    let skill_md = format!("---\nname: moves\ndescription: Needs alpha\nimage: {IMAGE_THAT_MOVES}\n---\n");
    let run = async || {
        let archive = zip_of(&[
            ("SKILL.md", skill_md.as_str()),
            ("scripts/main.py", "import alpha"),
            ("requirements.txt", "alpha"),
        ]);
        let execution = world.run_archive(archive, RunSpec::default()).await.unwrap();
        assert_eq!(execution.status, Status::Success);
        index.fetched("alpha-1.0-py3-none-any.whl")
    };
    assert_eq!((run().await, run().await), (1, 1));
    move_tag().await;
    let moved_at = Instant::now();
    while run().await == 1 {
        assert!(
            moved_at.elapsed() < SOON,
            "the old image's packages are still used"
        );
    }
    let options = RemoveImageOptionsBuilder::default().force(true).build();
    docker
        .remove_image(IMAGE_THAT_MOVES, Some(options), None)
        .await
        .unwrap();
}
