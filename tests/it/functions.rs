//! Skills whose function is called, and the skills that they import.

use skillbox::engine::RunSpec;
use skillbox::execution::{Execution, Failure, Outcome, Status};
use skillbox::skill::{Language, Selector, SkillRef};

use crate::outcomes::{output, stdout, succeeded};
use crate::world::{World, json, zip_of};

const LEADS: [(&str, &str); 4] = [
    (
        "skill.toml",
        "name = 'sales.leads-eu'\nversion = '1.2.0'\ndescription = 'Cleans leads.'\nentrypoint = 'sync'\n",
    ),
    (
        "code/sync.py",
        "import json, pathlib\nfrom skills.sales.leads_eu.parts.rules import clean\n\n\ndef main(args):\n    known = json.loads((pathlib.Path(__file__).parents[1] / 'resources/known.json').read_text())\n    return {'leads': [clean(lead) for lead in args['leads']], 'known': known, 'module': __name__}\n",
    ),
    (
        "code/parts/rules.py",
        "def clean(lead):\n    return lead.strip().lower()\n\n\ndef main(args):\n    return clean(args['lead'])\n",
    ),
    ("resources/known.json", "[\"a@example.org\"]"),
];
const REPORT: [(&str, &str); 3] = [
    (
        "SKILL.md",
        "---\nname: report\ndescription: Reports on leads.\n---\n",
    ),
    ("skill.toml", "version = '0.1.0'\n"),
    (
        "code/main.py",
        "import datetime\nfrom skills.sales.leads_eu.sync import main as sync\n\n\nasync def main(args):\n    if args.get('when'):\n        return {'rows': [1, {'when': datetime.date(2026, 1, 2)}]}\n    if args.get('fail'):\n        raise LookupError('no such lead: ' + args['fail'])\n    return {'count': len(sync(args)['leads'])}\n",
    ),
];
const NODE: [(&str, &str); 3] = [
    (
        "skill.toml",
        "name = 'adder'\nversion = '1.0.0'\ndescription = 'Adds.'\n",
    ),
    (
        "code/main.mjs",
        "import { add } from './parts/add.mjs';\nexport async function main(args) {\n  return { sum: args.numbers.reduce(add, 0) };\n}\n",
    ),
    ("code/parts/add.mjs", "export const add = (a, b) => a + b;\n"),
];

async fn publish(world: &World, files: &[(&str, &str)]) {
    world
        .skills()
        .publish(world.tenant(), zip_of(files), None)
        .await
        .unwrap();
}

async fn run(world: &World, name: &str, ask: RunSpec) -> Execution {
    let skill = SkillRef {
        name: name.parse().unwrap(),
        selector: Selector::Latest,
    };
    let request = RunSpec {
        skill: Some(skill),
        ..ask
    };
    world.runs().run(world.tenant(), request).await.unwrap()
}

async fn call(world: &World, name: &str, ask: RunSpec) -> Outcome {
    run(world, name, ask).await.outcome.unwrap()
}

fn with(input: &str) -> RunSpec {
    RunSpec {
        input: Some(json(input)),
        ..RunSpec::default()
    }
}

async fn value(world: &World, name: &str, ask: RunSpec) -> serde_json::Value {
    output(&succeeded(run(world, name, ask).await))
}

#[tokio::test]
async fn function_gets_input_and_returns_output() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    publish(&world, &LEADS).await;
    let found = value(
        &world,
        "sales.leads-eu",
        with(r#"{"leads": [" A@Example.org "]}"#),
    )
    .await;
    let expected = serde_json::json!({
        "leads": ["a@example.org"],
        "known": ["a@example.org"],
        "module": "skills.sales.leads_eu.sync",
    });
    assert_eq!(found, expected);
    // Another module of it by its path.
    let named = RunSpec {
        script: Some("code/parts/rules.py".to_owned()),
        ..with(r#"{"lead": " X "}"#)
    };
    assert_eq!(value(&world, "sales.leads-eu", named).await, "x");
    publish(&world, &NODE).await;
    let sum = value(&world, "adder", with(r#"{"numbers": [1, 2, 3.5]}"#)).await;
    assert_eq!(sum, serde_json::json!({"sum": 6.5}));
}

#[tokio::test]
async fn function_imports_mounted_skills() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    publish(&world, &LEADS).await;
    publish(&world, &REPORT).await;
    let mounting = |mounts: &[&str]| RunSpec {
        mount_skills: mounts.iter().map(|mount| mount.parse().unwrap()).collect(),
        ..with(r#"{"leads": ["a", "b"]}"#)
    };
    let found = value(&world, "report", mounting(&["sales.leads-eu@1.2.0", "report"])).await;
    assert_eq!(found, serde_json::json!({"count": 2}));
    let alone = call(&world, "report", mounting(&[])).await.error.unwrap();
    let exception = alone.exception.unwrap();
    assert_eq!(
        (alone.code.as_str(), exception.name.as_str()),
        ("exception", "ModuleNotFoundError")
    );
    let skill = SkillRef {
        name: "report".parse().unwrap(),
        selector: Selector::Latest,
    };
    let request = RunSpec {
        skill: Some(skill),
        ..mounting(&["no-such-skill"])
    };
    let refused = world
        .runs()
        .run(world.tenant(), request)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.starts_with("mount_skills: skill `no-such-skill`"),
        "{refused}"
    );
}

/// As many as are promised, beside the skill that runs.
#[tokio::test]
async fn mounts_many_skills() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let names: Vec<_> = (0..skillbox::limits::MOUNTED_SKILLS_MAX)
        .map(|number| format!("beside-{number}"))
        .collect();
    for name in &names {
        let head = format!("---\nname: {name}\ndescription: Lies beside\nlang: bash\n---\n");
        let files = [("SKILL.md", head.as_str()), ("scripts/main.sh", "true\n")];
        world
            .skills()
            .publish(world.tenant(), zip_of(&files), None)
            .await
            .unwrap();
    }
    let lists = "---\nname: lists\ndescription: Lists skills\nlang: bash\n---\n";
    let files = [("SKILL.md", lists), ("scripts/main.sh", "ls /skills\n")];
    world
        .skills()
        .publish(world.tenant(), zip_of(&files), None)
        .await
        .unwrap();
    let ask = RunSpec {
        mount_skills: names.iter().map(|name| name.parse().unwrap()).collect(),
        ..RunSpec::default()
    };
    let listed = succeeded(world.run_latest("lists", ask).await.unwrap());
    assert_eq!(stdout(&listed).lines().count(), names.len() + 1);
}

#[tokio::test]
async fn reports_place_of_exception_or_invalid_return_value() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    publish(&world, &LEADS).await;
    publish(&world, &REPORT).await;
    let mounting = |input: &str| RunSpec {
        mount_skills: vec!["sales.leads-eu".parse().unwrap()],
        ..with(input)
    };
    let odd = call(&world, "report", mounting(r#"{"when": true}"#)).await;
    let error = odd.error.unwrap();
    assert_eq!(
        (odd.status, error.code.as_str()),
        (Status::Failed, "output_not_json")
    );
    assert!(error.message.contains("$.rows[1].when"), "{}", error.message);
    let raised = call(&world, "report", mounting(r#"{"fail": "x"}"#))
        .await
        .error
        .unwrap();
    let exception = raised.exception.unwrap();
    assert_eq!(
        (exception.name.as_str(), exception.value.as_str()),
        ("LookupError", "no such lead: x")
    );
    let traceback = exception.traceback;
    assert!(
        traceback.contains("/skills/report/code/main.py") && !traceback.contains("/sandbox/runtime"),
        "{traceback}"
    );
}

/// A called function gets its arguments in every shape that people write, never silently empty ones.
#[tokio::test]
async fn function_with_several_parameters_gets_input_members() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let given = r#"{"a": 1, "b": 2}"#;
    for (main, input, expected) in [
        (
            "def main(**kw): return kw",
            given,
            serde_json::json!({"a": 1, "b": 2}),
        ),
        (
            "def main(a, b=5): return [a, b]",
            given,
            serde_json::json!([1, 2]),
        ),
        (
            "def main(a, b=5): return [a, b]",
            r#"{"a": 1}"#,
            serde_json::json!([1, 5]),
        ),
        (
            "def main(*, a, b): return [a, b]",
            given,
            serde_json::json!([1, 2]),
        ),
        (
            "async def main(a, **rest): return [a]",
            given,
            serde_json::json!([{"a": 1, "b": 2}]),
        ),
        (
            "def main(args): return args",
            given,
            serde_json::json!({"a": 1, "b": 2}),
        ),
        (
            "def main(a=5): return a",
            given,
            serde_json::json!({"a": 1, "b": 2}),
        ),
        ("def main(*args): return args[0]", "[1]", serde_json::json!([1])),
        (
            "def main(args, verbose=False): return [args, verbose]",
            r#"{"x": 1}"#,
            serde_json::json!([{"x": 1}, false]),
        ),
        (
            "class A:\n    def run(self, args): return args\nmain = A().run",
            "3",
            serde_json::json!(3),
        ),
        ("def main(): return 1", given, serde_json::json!(1)),
    ] {
        assert_eq!(
            code(&world, main, input).await.map_err(|error| error.message),
            Ok(expected),
            "{main} {input}"
        );
    }
}

#[tokio::test]
async fn rejects_input_members_without_matching_parameter() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    for (main, input, part) in [
        (
            "def main(a, b): return 1",
            r#"{"a": 1}"#,
            "missing a required argument: 'b'",
        ),
        (
            "def main(a, b=1): return 1",
            r#"{"a": 1, "c": 1}"#,
            "unexpected keyword argument 'c'",
        ),
        (
            "def main(a, b=1): return 1",
            r#"{"b": 1}"#,
            "missing a required argument: 'a'",
        ),
        ("def main(**kw): return 1", "[1]", "it is no object"),
    ] {
        let error = code(&world, main, input).await.unwrap_err();
        assert!(error.message.contains(part), "{main} {input}: {}", error.message);
    }
    // What it raises itself is its own.
    let raises = "def main(a, b): raise TypeError('mine')";
    let own = code(&world, raises, r#"{"a": 1, "b": 2}"#).await.unwrap_err();
    assert_eq!(own.exception.unwrap().value, "mine");
}

/// The value that this code gives.
async fn code(world: &World, text: &str, input: &str) -> Result<serde_json::Value, Failure> {
    let spec = RunSpec {
        language: Some(Language::Python),
        code: Some(text.to_owned()),
        ..with(input)
    };
    let ran = world.run_request(spec).await;
    let outcome = ran.unwrap().outcome.unwrap();
    match outcome.error.clone() {
        Some(error) => Err(error),
        None => Ok(output(&outcome)),
    }
}
