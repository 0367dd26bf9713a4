//! Where packages are asked for: by a Bash script's skill, in a module's header, by mounted skills, in advance.

use skillbox::engine::RunSpec;
use skillbox::error::Code;
use skillbox::execution::Outcome;
use skillbox::skill::{Language, Selector};

use super::deps::{asking, ended, run, world_with_index};
use crate::index::OwnIndex;
use crate::outcomes::{output, stdout, succeeded};
use crate::world::{Backend, World, missing, zip_of};

const SKILL_MD: &str = "---\nname: needs\ndescription: Needs packages.\nlang: bash\n---\n";
const PYTHON: &str = "import alpha\nprint('python', alpha.x)\n";
const NODE: &str = "import beta from 'beta';\nconsole.log('node', beta);\n";

/// An index with `alpha` for Python and `beta` for Node.
async fn world() -> Option<(World, OwnIndex)> {
    let (world, index) = world_with_index().await?;
    index.wheel("alpha", &[("alpha.py", "x = 1\n")]);
    index.node_package("beta", "1.0.0", &[("index.js", "module.exports = 1;\n")]);
    index.node_package("beta", "2.0.0", &[("index.js", "module.exports = 2;\n")]);
    if super::BACKEND == Backend::Docker && !index.offer_npm() {
        missing("packages", "there is no npm to be had for images without one");
        return None;
    }
    Some((world, index))
}

async fn publish(world: &World, files: &[(&str, &str)]) {
    let published = world.skills().publish(world.tenant(), zip_of(files), None).await;
    published.unwrap();
}

async fn run_code(world: &World, language: Language, text: &str, mounts: &[&str]) -> Outcome {
    let ask = RunSpec {
        mount_skills: mounts.iter().map(|name| name.parse().unwrap()).collect(),
        ..RunSpec::default()
    };
    let (language, code) = (language, text.to_owned());
    succeeded(
        world
            .run_request(RunSpec {
                language: Some(language),
                code: Some(code),
                ..ask
            })
            .await
            .unwrap(),
    )
}

#[tokio::test]
async fn programs_called_by_bash_import_packages_of_skill() {
    let Some((world, _index)) = world().await else {
        return;
    };
    let python = [
        ("SKILL.md", SKILL_MD),
        ("scripts/main.sh", "python3 /skills/needs/lib/x.py\n"),
        ("scripts/tool.sh", "python3 lib/x.py\n"),
        ("lib/x.py", PYTHON),
        ("requirements.txt", "alpha\n"),
    ];
    for script in [None, Some("scripts/tool.sh".to_owned())] {
        let ask = RunSpec {
            script,
            ..RunSpec::default()
        };
        let outcome = ended(&world, zip_of(&python), ask).await.unwrap();
        assert_eq!(stdout(&outcome), "python 1\n");
    }
    let node = [
        ("SKILL.md", SKILL_MD),
        (
            "scripts/main.sh",
            "node /skills/needs/lib/x.mjs\nnode -p 'require(\"beta\")'\n",
        ),
        ("lib/x.mjs", NODE),
        ("package.json", r#"{"dependencies": {"beta": "1"}}"#),
    ];
    let outcome = ended(&world, zip_of(&node), RunSpec::default()).await.unwrap();
    assert_eq!(stdout(&outcome), "node 1\n1\n");
}

/// `--lang bash --requirement alpha` with `python3 -` inside.
#[tokio::test]
async fn requirements_of_bash_request_apply_to_python() {
    let Some((world, _index)) = world().await else {
        return;
    };
    let text = "python3 - <<END\nimport alpha\nprint('python', alpha.x)\nEND\n";
    let (language, code) = (Language::Bash, text.to_owned());
    let request = RunSpec {
        language: Some(language),
        code: Some(code),
        ..asking(&["alpha"])
    };
    let outcome = succeeded(world.runs().run(world.tenant(), request).await.unwrap());
    assert_eq!(stdout(&outcome), "python 1\n");
    if super::BACKEND == Backend::Native {
        return;
    }
    // Its skill's scripts are in Node, and so is its image.
    let files = [
        ("SKILL.md", SKILL_MD),
        ("scripts/main.sh", text),
        ("scripts/tool.mjs", NODE),
    ];
    let error = run(&world, zip_of(&files), asking(&["alpha"])).await.unwrap_err();
    assert!(
        error.code() == Code::DependenciesFailed && error.to_string().contains("`python3`"),
        "{error}"
    );
}

/// An image has one interpreter, this machine both.
#[tokio::test]
async fn bash_script_gets_packages_of_each_present_interpreter() {
    let Some((world, _index)) = world().await else {
        return;
    };
    let both = [
        ("SKILL.md", SKILL_MD),
        (
            "scripts/main.sh",
            "python3 /skills/needs/lib/x.py\nif type node > /dev/null; then node /skills/needs/lib/x.mjs; fi\n",
        ),
        ("lib/x.py", PYTHON),
        ("lib/x.mjs", NODE),
        ("requirements.txt", "alpha\n"),
        ("package.json", r#"{"dependencies": {"beta": "1"}}"#),
    ];
    let outcome = ended(&world, zip_of(&both), RunSpec::default()).await.unwrap();
    let expected = match super::BACKEND {
        Backend::Docker => "python 1\n",
        Backend::Native => "python 1\nnode 1\n",
    };
    assert_eq!(stdout(&outcome), expected);
}

/// The same for a Python script that calls Node, and the other way round.
#[tokio::test]
async fn called_program_of_other_language_imports_its_packages() {
    let Some((world, index)) = world().await else {
        return;
    };
    let of_both = |script: &'static str, text: &'static str| {
        zip_of(&[
            (
                "SKILL.md",
                "---\nname: needs\ndescription: Needs packages.\n---\n",
            ),
            (script, text),
            ("lib/x.py", PYTHON),
            ("lib/x.mjs", NODE),
            ("requirements.txt", "alpha\n"),
            ("package.json", r#"{"dependencies": {"beta": "1"}}"#),
        ])
    };
    let from_python = "import alpha, shutil, subprocess\nprint('own', alpha.x, flush=True)\nif shutil.which('node'): subprocess.run(['node', 'lib/x.mjs'], check=True)\n";
    let from_node = "import beta from 'beta';\nimport {spawnSync} from 'child_process';\nconsole.log('own', beta);\nspawnSync('python3', ['lib/x.py'], {stdio: 'inherit'});\n";
    for (script, text, other) in [
        ("scripts/tool.py", from_python, "node 1\n"),
        ("scripts/tool.mjs", from_node, "python 1\n"),
    ] {
        let ask = RunSpec {
            script: Some(script.to_owned()),
            ..RunSpec::default()
        };
        let outcome = ended(&world, of_both(script, text), ask).await.unwrap();
        let expected = match super::BACKEND {
            Backend::Docker => "own 1\n".to_owned(),
            Backend::Native => format!("own 1\n{other}"),
        };
        assert_eq!(stdout(&outcome), expected, "{script}");
    }
    assert_eq!(index.fetched("alpha-1.0-py3-none-any.whl"), 1);
}

/// Packages of the other language that cannot be had keep nobody from running who does not need them.
#[tokio::test]
async fn unavailable_packages_of_other_language_do_not_block_program() {
    let Some((world, _index)) = world().await else {
        return;
    };
    let files = [
        (
            "SKILL.md",
            "---\nname: needs\ndescription: Needs packages.\n---\n",
        ),
        ("scripts/tool.py", "import alpha\nprint(alpha.x)\n"),
        ("scripts/tool.mjs", "import none from 'none';\n"),
        ("requirements.txt", "alpha\n"),
        (
            "package.json",
            r#"{"dependencies": {"none": "git+ssh://somewhere/none"}}"#,
        ),
    ];
    let asked = |script: &str| RunSpec {
        script: Some(script.to_owned()),
        ..RunSpec::default()
    };
    let outcome = ended(&world, zip_of(&files), asked("scripts/tool.py"))
        .await
        .unwrap();
    assert_eq!(stdout(&outcome), "1\n");
    let error = run(&world, zip_of(&files), asked("scripts/tool.mjs"))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::DependenciesFailed);
}

/// Whether a skill's own image has an interpreter is seen when it is asked for, and then known.
#[tokio::test]
async fn skips_packages_for_interpreters_missing_in_image() {
    if super::BACKEND == Backend::Native {
        return;
    }
    let Some((world, _index)) = world().await else {
        return;
    };
    let python = crate::world::images().python;
    let packages = [
        ("requirements.txt", "alpha\n"),
        ("package.json", r#"{"dependencies": {"beta": "1"}}"#),
    ];
    for (language, program, text) in [
        ("python", "scripts/main.py", PYTHON),
        ("bash", "scripts/main.sh", "python3 /skills/needs/lib/x.py\n"),
    ] {
        let skill_md = format!(
            "---\nname: needs\ndescription: Needs packages.\nlang: {language}\nimage: {python}\n---\n"
        );
        let files = [
            ("SKILL.md", skill_md.as_str()),
            (program, text),
            ("lib/x.py", PYTHON),
        ];
        for _ in 0..2 {
            let archive = zip_of(&[&files[..], &packages].concat());
            let outcome = ended(&world, archive, RunSpec::default()).await.unwrap();
            assert_eq!(stdout(&outcome), "python 1\n");
        }
    }
    // What the program itself needs is not left out.
    let skill_md = format!(
        "---\nname: needs\ndescription: Needs packages.\nentrypoint: scripts/main.mjs\nimage: {python}\n---\n"
    );
    let files = [("SKILL.md", skill_md.as_str()), ("scripts/main.mjs", NODE)];
    let archive = zip_of(&[&files[..], &packages].concat());
    let error = run(&world, archive, RunSpec::default()).await.unwrap_err();
    assert!(
        error.code() == Code::DependenciesFailed && error.to_string().contains("`node`"),
        "{error}"
    );
}

#[tokio::test]
async fn bash_code_calls_programs_of_mounted_skills() {
    let Some((world, _index)) = world().await else {
        return;
    };
    let skill_md = "---\nname: tools\ndescription: Tools.\n---\n";
    let files = [
        ("SKILL.md", skill_md),
        ("scripts/x.py", PYTHON),
        ("requirements.txt", "alpha\n"),
    ];
    publish(&world, &files).await;
    let outcome = run_code(
        &world,
        Language::Bash,
        "python3 /skills/tools/scripts/x.py",
        &["tools"],
    )
    .await;
    assert_eq!(stdout(&outcome), "python 1\n");
}

/// PEP 723, wherever the program is: a module of a function, a script that is run as a module, code.
#[tokio::test]
async fn reads_pep_723_header_for_every_file_name() {
    let Some((world, _index)) = world().await else {
        return;
    };
    let header = "# /// script\n# dependencies = ['alpha']\n# ///\nimport alpha\n";
    let function = format!("{header}def main(args):\n    return alpha.x\n");
    let files = [
        ("skill.toml", "name = 'needs'\ndescription = 'Needs packages.'\n"),
        ("code/main.py", &function),
    ];
    let outcome = ended(&world, zip_of(&files), RunSpec::default()).await.unwrap();
    assert_eq!(output(&outcome), 1);

    let module = format!("{header}from .other import y\nprint(alpha.x, y)\n");
    let files = [
        (
            "SKILL.md",
            "---\nname: needs\ndescription: Needs packages.\n---\n",
        ),
        ("scripts/count.py", &module),
        ("scripts/other.py", "y = 2\n"),
    ];
    let ask = RunSpec {
        script: Some("scripts/count.py".to_owned()),
        ..RunSpec::default()
    };
    let outcome = ended(&world, zip_of(&files), ask).await.unwrap();
    assert_eq!(stdout(&outcome), "1 2\n");

    let outcome = run_code(&world, Language::Python, &format!("{header}alpha.x"), &[]).await;
    assert_eq!(output(&outcome), 1);
}

/// As `uv run`: the list of the skill applies to its other scripts. The index has only a source package of `omega`.
#[tokio::test]
async fn script_header_replaces_requirements_of_skill() {
    let Some((world, index)) = world().await else {
        return;
    };
    index.wheel("delta", &[("delta.py", "x = 4\n")]);
    index.offer("omega", "omega-1.0.tar.gz", b"never built".to_vec());
    let find =
        "import importlib.util as u\nprint([n for n in ('alpha', 'delta', 'omega') if u.find_spec(n)])\n";
    let script = |dependencies: &str| format!("# /// script\n{dependencies}# ///\n{find}");
    let (own, empty) = (script("# dependencies = ['alpha']\n"), script(""));
    let source = script("# dependencies = ['omega']\n");
    let invalid = script("# dependencies = [\n");
    let of_list = |list: &str| {
        zip_of(&[
            (
                "SKILL.md",
                "---\nname: needs\ndescription: Needs packages.\n---\n",
            ),
            ("requirements.txt", list),
            ("scripts/plain.py", find),
            ("scripts/own.py", &own),
            ("scripts/empty.py", &empty),
            ("scripts/invalid.py", &invalid),
            ("scripts/source.py", &source),
        ])
    };
    let asked = |script: &str, requirements: &[&str]| RunSpec {
        script: Some(script.to_owned()),
        ..asking(requirements)
    };
    for (script, list, requirements, expected) in [
        ("scripts/plain.py", "delta", &[][..], "['delta']\n"),
        ("scripts/invalid.py", "delta", &[], "['delta']\n"),
        // A list with a package that nobody can install does not matter either.
        ("scripts/own.py", "omega", &[], "['alpha']\n"),
        ("scripts/own.py", "omega", &["delta"], "['alpha', 'delta']\n"),
        ("scripts/empty.py", "omega", &[], "[]\n"),
        ("scripts/empty.py", "omega", &["delta"], "['delta']\n"),
    ] {
        let outcome = ended(&world, of_list(list), asked(script, requirements))
            .await
            .unwrap();
        assert_eq!(stdout(&outcome), expected, "{script} {requirements:?}");
    }
    let error = run(&world, of_list("delta"), asked("scripts/source.py", &[]))
        .await
        .unwrap_err();
    assert!(
        error.code() == Code::DependenciesFailed
            && error.to_string().contains("source packages are not built"),
        "{error}"
    );
}

#[tokio::test]
async fn installs_packages_of_mounted_node_skills_with_own_packages() {
    let Some((world, index)) = world().await else {
        return;
    };
    index.node_package("gamma", "1.0.0", &[("index.js", "module.exports = 'g';\n")]);
    let mounted = |name: &str, dependencies: &str| {
        [
            (
                "SKILL.md",
                format!("---\nname: {name}\ndescription: Tools.\n---\n"),
            ),
            ("scripts/tool.mjs", "export {default} from 'beta';\n".to_owned()),
            ("package.json", format!("{{\"dependencies\": {dependencies}}}")),
        ]
    };
    for (name, dependencies) in [
        ("tools", r#"{"beta": ">=1", "gamma": "1"}"#),
        ("older", r#"{"beta": "next"}"#),
    ] {
        let files = mounted(name, dependencies);
        let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        publish(&world, &files).await;
    }
    let code = "import beta from '/skills/tools/scripts/tool.mjs';\nimport gamma from 'gamma';\nconsole.log(beta, gamma);\n";
    let own = [
        (
            "SKILL.md",
            "---\nname: needs\ndescription: Needs packages.\nentrypoint: scripts/main.mjs\n---\n",
        ),
        ("scripts/main.mjs", code),
        ("package.json", r#"{"dependencies": {"beta": "^1.0.0"}}"#),
    ];
    let mounting = |name: &str| RunSpec {
        mount_skills: vec![name.parse().unwrap()],
        ..RunSpec::default()
    };
    let outcome = ended(&world, zip_of(&own), mounting("tools")).await.unwrap();
    assert_eq!(stdout(&outcome), "1 g\n");
    let error = run(&world, zip_of(&own), mounting("older")).await.unwrap_err();
    let text = error.to_string();
    assert!(
        error.code() == Code::DependenciesFailed
            && text.contains("mounted skill `older`")
            && text.contains("`beta`"),
        "{text}"
    );
}

#[tokio::test]
async fn prefetches_packages_without_secrets_of_skill() {
    let Some((world, index)) = world().await else {
        return;
    };
    let skill_md = "---\nname: needs\ndescription: Needs packages.\nlang: python\npermissions: {secrets: [API_TOKEN]}\n---\n";
    let files = [
        ("SKILL.md", skill_md),
        ("scripts/main.py", "import alpha\n"),
        ("requirements.txt", "alpha\n"),
    ];
    publish(&world, &files).await;
    let name = "needs".parse().unwrap();
    let sets = world
        .packages()
        .prefetch(world.tenant(), name, Selector::Latest, None)
        .await
        .unwrap();
    assert_eq!((sets.len(), index.fetched("alpha-1.0-py3-none-any.whl")), (1, 1));
    // To run, it needs them all the same.
    let error = run(&world, zip_of(&files), RunSpec::default()).await.unwrap_err();
    assert!(error.to_string().contains("API_TOKEN"), "{error}");
}
