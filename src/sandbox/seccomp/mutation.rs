//! Shows that every part of the table is tested: removing any part changes a snapshot or the result of a probe.

use super::bpf::{answer, program_of};
use super::{Masked, RULES, Rule, lines, profile_of};

/// The snapshot that the test of the profile compares.
const REVIEWED: &str = include_str!(
    "../docker/snapshots/skillbox__sandbox__docker__policy__tests__the_seccomp_profile_is_the_reviewed_table.snap"
);

const ALLOW: u32 = 0x7fff_0000;
const EPERM: u32 = 0x0005_0001;
const ENOSYS: u32 = 0x0005_0026;
const NOTHING: u32 = 0x0005_0000;

/// Calls whose arguments decide, honest and hostile, with the expected answer of the kernel.
const PROBES: &[(&str, [u64; 3], u32)] = &[
    ("clone", [17, 0, 0], ALLOW),
    ("clone", [0x1000_0011, 0, 0], EPERM),
    ("clone3", [0, 0, 0], ENOSYS),
    ("socket", [1, 1, 0], ALLOW),
    ("socket", [2, 1, 0], ALLOW),
    ("socket", [2, 1, 6], ALLOW),
    ("socket", [2, 2, 0], ALLOW),
    ("socket", [2, 2, 17], ALLOW),
    ("socket", [10, 1, 0], ALLOW),
    ("socket", [10, 1, 6], ALLOW),
    ("socket", [10, 2, 0], ALLOW),
    ("socket", [10, 2, 17], ALLOW),
    ("socket", [16, 3, 0], ALLOW),
    // AF_VSOCK and AF_PACKET, with each type and protocol that others may have.
    ("socket", [40, 1, 0], EPERM),
    ("socket", [40, 1, 6], EPERM),
    ("socket", [40, 2, 0], EPERM),
    ("socket", [40, 2, 17], EPERM),
    ("socket", [17, 3, 0], EPERM),
    ("socket", [17, 3, 3], EPERM),
    // Raw sockets, SCTP and UDP-Lite, NETLINK_CONNECTOR and similar.
    ("socket", [2, 3, 0], EPERM),
    ("socket", [2, 3, 6], EPERM),
    ("socket", [2, 3, 17], EPERM),
    ("socket", [2, 1, 132], EPERM),
    ("socket", [2, 2, 136], EPERM),
    ("socket", [10, 3, 0], EPERM),
    ("socket", [10, 3, 6], EPERM),
    ("socket", [10, 3, 17], EPERM),
    ("socket", [10, 1, 132], EPERM),
    ("socket", [10, 2, 136], EPERM),
    ("socket", [16, 3, 11], EPERM),
    ("socketpair", [1, 1, 0], ALLOW),
    ("socketpair", [2, 1, 0], EPERM),
    ("personality", [0, 0, 0], ALLOW),
    ("personality", [0xffff_ffff, 0, 0], ALLOW),
    ("personality", [0x0004_0000, 0, 0], EPERM),
    ("mknod", [0, 0o010_600, 0], ALLOW),
    ("mknod", [0, 0o020_600, 0], EPERM),
    ("mknodat", [0, 0, 0o010_600], ALLOW),
    ("mknodat", [0, 0, 0o060_600], EPERM),
    ("prlimit64", [0, 0, 0], ALLOW),
    ("prlimit64", [1, 0, 0], EPERM),
    ("sched_setaffinity", [0, 0, 0], ALLOW),
    ("sched_setaffinity", [1, 0, 0], EPERM),
    ("sched_setscheduler", [0, 0, 0], ALLOW),
    ("sched_setscheduler", [1, 0, 0], EPERM),
    ("sched_setparam", [0, 0, 0], ALLOW),
    ("sched_setparam", [1, 0, 0], EPERM),
    ("sched_setattr", [0, 0, 0], ALLOW),
    ("sched_setattr", [1, 0, 0], EPERM),
    ("setpriority", [0, 0, 0], ALLOW),
    ("setpriority", [0, 1, 0], EPERM),
    ("setpriority", [2, 0, 0], EPERM),
    ("ioctl", [0, 0x5401, 0], ALLOW),
    ("ioctl", [0, 0x5412, 0], EPERM),
    ("ioctl", [0, 0x541c, 0], EPERM),
    ("ioctl", [0, 0x5423, 0], EPERM),
    ("sync", [0, 0, 0], NOTHING),
    ("syncfs", [0, 0, 0], NOTHING),
];

/// The probes and always allowed calls with an unexpected answer.
fn turned(rules: &[Rule]) -> Vec<&'static str> {
    let program = program_of(rules);
    let always = RULES.iter().flat_map(|rule| match rule {
        Rule::Always(names) => *names,
        Rule::When(..) | Rule::Unless(..) | Rule::Answered(..) => &[],
    });
    let always = always.map(|name| (*name, [0; 3], ALLOW));
    let probes = PROBES.iter().copied().chain(always);
    let wrong = probes.filter(|(name, [first, second, third], verdict)| {
        let answered = answer(&program, name, [*first, *second, *third, 0, 0, 0]);
        answered.is_some_and(|answered| answered != *verdict)
    });
    wrong.map(|(name, ..)| name).collect()
}

/// All copies of a list that lack one element.
fn without_each<T: Copy>(list: &[T]) -> Vec<&'static [T]> {
    let without = |gone: usize| {
        let left = list.iter().enumerate().filter(|(index, _)| *index != gone);
        &*Vec::leak(left.map(|(_, element)| *element).collect())
    };
    (0..list.len()).map(without).collect()
}

/// A rule without any single name, comparison or value of it.
fn weaker(rule: &Rule) -> Vec<Rule> {
    let fewer = |comparisons: &[Masked]| without_each(comparisons);
    match *rule {
        Rule::Always(names) => without_each(names).into_iter().map(Rule::Always).collect(),
        Rule::When(name, comparisons) => fewer(comparisons)
            .into_iter()
            .map(|left| Rule::When(name, left))
            .collect(),
        Rule::Unless(name, comparisons, index, values) => {
            let compared = fewer(comparisons)
                .into_iter()
                .map(|left| Rule::Unless(name, left, index, values));
            let valued = without_each(values)
                .into_iter()
                .map(|left| Rule::Unless(name, comparisons, index, left));
            compared.chain(valued).collect()
        }
        Rule::Answered(..) => Vec::new(),
    }
}

#[test]
fn table_matches_each_probe() {
    assert_eq!(turned(RULES), [""; 0]);
}

/// P13: no rule, name, comparison or value is superfluous or untested.
#[test]
fn removing_any_rule_is_detected() {
    let (_, reviewed) = REVIEWED.rsplit_once("---\n").unwrap();
    assert_eq!(lines(&profile_of(RULES, "amd64")), reviewed.trim_end());
    let mut mutants = 0;
    let mut check = |what: &str, rules: &[Rule]| {
        assert_ne!(lines(&profile_of(rules, "amd64")), reviewed.trim_end(), "{what}");
        assert!(!turned(rules).is_empty(), "no probe turns: {what}");
        mutants += 1;
    };
    for (index, rule) in RULES.iter().enumerate() {
        let mut rules = RULES.to_vec();
        rules.remove(index);
        check(&format!("without {rule:?}"), &rules);
        for weaker in weaker(rule) {
            let mut rules = RULES.to_vec();
            rules[index] = weaker;
            check(&format!("{weaker:?} in the place of {rule:?}"), &rules);
        }
    }
    assert!(mutants > 300, "{mutants}");
}
