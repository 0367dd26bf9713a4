//! Compiles the table to a classic BPF program for this machine's kernel. Pure, so that a test can interpret it.
//!
//! A search tree over ranges of numbers leads to a verdict or to the rules of a call. Calls of other architectures
//! and of x32 are rejected like any other; nothing kills a process.

use std::collections::BTreeMap;

use super::numbers::{self, ARCHITECTURE};
use super::{Masked, REFUSED, RULES, Rule, names};

/// An instruction in the kernel's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sandbox) struct Instruction {
    /// Operation.
    pub(in crate::sandbox) code: u16,
    /// Instructions to skip if a comparison holds.
    pub(in crate::sandbox) holds: u8,
    /// Instructions to skip if it does not.
    pub(in crate::sandbox) fails: u8,
    pub(in crate::sandbox) operand: u32,
}

/// The whole filter; `None` on an unsupported architecture.
pub(in crate::sandbox) fn program() -> Option<Vec<Instruction>> {
    ARCHITECTURE.map(|architecture| compile(RULES, architecture))
}

/// A filter that answers these calls with `ENOSYS` and leaves all others to the next filter.
pub(in crate::sandbox) fn refusing(calls: &[String]) -> Option<Vec<Instruction>> {
    let refuse = end(ERRNO | ENOSYS);
    let mut program = vec![
        load(ARCH),
        skip_if(EQUAL, ARCHITECTURE?, 1),
        end(ALLOW),
        load(NUMBER),
    ];
    for number in calls.iter().filter_map(|name| numbers::number(name)) {
        program.extend([skip_unless(EQUAL, number, 1), refuse]);
    }
    program.push(end(ALLOW));
    Some(program)
}

/// Load a 32-bit word of `seccomp_data`.
const LOAD: u16 = 0x20;
/// `accumulator &= operand`.
const AND: u16 = 0x54;
/// Jump by `operand`.
const JUMP: u16 = 0x05;
/// Compare with `operand`.
const EQUAL: u16 = 0x15;
/// Compare with `operand`.
const AT_LEAST: u16 = 0x35;
/// End with the verdict `operand`.
const RETURN: u16 = 0x06;

const ALLOW: u32 = 0x7fff_0000;
const ERRNO: u32 = 0x0005_0000;
/// As in an older kernel, so that programs use alternatives.
const ENOSYS: u32 = 38;

/// Offsets within `seccomp_data`.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ARGUMENTS: u32 = 16;

/// First number of x32, another ABI of the same architecture.
const X32: u32 = 0x4000_0000;

/// The decision about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Decision {
    Allow,
    Errno(u32),
    /// Allowed if any of these holds.
    Ask(Vec<Way>),
}

/// Holds if all comparisons hold and the low half of the argument at the index is none of the values.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Way {
    comparisons: &'static [Masked],
    unless: Option<(u32, &'static [u32])>,
}

fn compile(rules: &[Rule], architecture: u32) -> Vec<Instruction> {
    let refuse = end(ERRNO | REFUSED);
    let mut program = vec![
        load(ARCH),
        skip_if(EQUAL, architecture, 1),
        refuse,
        load(NUMBER),
        skip_unless(AT_LEAST, X32, 1),
        refuse,
    ];
    program.extend(search(&ranges(rules)));
    program
}

/// The verdict from each number up to the next; the first is 0.
fn ranges(rules: &[Rule]) -> Vec<(u32, Decision)> {
    let refuse = Decision::Errno(REFUSED);
    let mut ranges = vec![(0, refuse.clone())];
    let mut push = |from: u32, verdict: &Decision| {
        if ranges.last().is_some_and(|(start, _)| *start == from) {
            ranges.pop();
        }
        if ranges.last().is_none_or(|(_, last)| last != verdict) {
            ranges.push((from, verdict.clone()));
        }
    };
    for (number, verdict) in verdicts(rules) {
        push(number, &verdict);
        push(number + 1, &refuse);
    }
    ranges
}

fn verdicts(rules: &[Rule]) -> BTreeMap<u32, Decision> {
    let mut verdicts = BTreeMap::new();
    for rule in rules {
        for number in names(rule).iter().filter_map(|name| numbers::number(name)) {
            let verdict = match rule {
                Rule::Always(_) => Decision::Allow,
                Rule::Answered(_, errno) => Decision::Errno(*errno),
                Rule::When(_, comparisons) => Decision::Ask(vec![Way {
                    comparisons,
                    unless: None,
                }]),
                Rule::Unless(_, comparisons, index, values) => Decision::Ask(vec![Way {
                    comparisons,
                    unless: Some((*index, values)),
                }]),
            };
            match (verdicts.get_mut(&number), verdict) {
                (Some(Decision::Ask(known)), Decision::Ask(more)) => known.extend(more),
                (_, verdict) => drop(verdicts.insert(number, verdict)),
            }
        }
    }
    verdicts
}

/// A balanced tree: each comparison halves the ranges.
fn search(ranges: &[(u32, Decision)]) -> Vec<Instruction> {
    match ranges {
        [] => vec![end(ERRNO | REFUSED)],
        [(_, verdict)] => leaf(verdict),
        _ => {
            let (low, high) = ranges.split_at(ranges.len() / 2);
            let (from, low, high) = (high[0].0, search(low), search(high));
            let mut tree = match u8::try_from(low.len()) {
                Ok(length) => vec![skip_if(AT_LEAST, from, length)],
                // Too far for a comparison, so it skips a jump.
                Err(_) => vec![skip_unless(AT_LEAST, from, 1), jump(low.len())],
            };
            tree.extend(low);
            tree.extend(high);
            tree
        }
    }
}

fn leaf(verdict: &Decision) -> Vec<Instruction> {
    match verdict {
        Decision::Allow => vec![end(ALLOW)],
        Decision::Errno(errno) => vec![end(ERRNO | errno)],
        Decision::Ask(ways) => {
            let mut program: Vec<_> = ways.iter().flat_map(allow).collect();
            program.push(end(ERRNO | REFUSED));
            program
        }
    }
}

/// Allows calls for which this alternative holds, else continues after it. Compares only low halves.
fn allow(way: &Way) -> Vec<Instruction> {
    let forbidden = way.unless.map_or(&[][..], |(_, values)| values);
    // From after a comparison to after all of them: the rest, and the end.
    let behind = |following: usize| {
        u8::try_from(following + 1).expect("a call has six arguments and few forbidden values")
    };
    let unless = usize::from(way.unless.is_some()) + forbidden.len();
    let mut program = Vec::new();
    for (done, Masked { index, mask, value }) in way.comparisons.iter().enumerate() {
        let following = 3 * (way.comparisons.len() - done - 1) + unless;
        program.extend([
            load(ARGUMENTS + 8 * index),
            plain(AND, *mask),
            skip_unless(EQUAL, *value, behind(following)),
        ]);
    }
    program.extend(way.unless.map(|(index, _)| load(ARGUMENTS + 8 * index)));
    for (done, value) in forbidden.iter().enumerate() {
        let following = forbidden.len() - done - 1;
        program.push(skip_if(EQUAL, *value, behind(following)));
    }
    program.push(end(ALLOW));
    program
}

const fn plain(code: u16, operand: u32) -> Instruction {
    Instruction {
        code,
        holds: 0,
        fails: 0,
        operand,
    }
}

/// Skips this many instructions if the comparison holds.
const fn skip_if(code: u16, operand: u32, holds: u8) -> Instruction {
    Instruction {
        holds,
        ..plain(code, operand)
    }
}

/// Skips this many instructions if the comparison fails.
const fn skip_unless(code: u16, operand: u32, fails: u8) -> Instruction {
    Instruction {
        fails,
        ..plain(code, operand)
    }
}

const fn load(offset: u32) -> Instruction {
    plain(LOAD, offset)
}

const fn end(verdict: u32) -> Instruction {
    plain(RETURN, verdict)
}

fn jump(over: usize) -> Instruction {
    plain(
        JUMP,
        u32::try_from(over).expect("the kernel takes 4,096 instructions"),
    )
}

/// A filter of other rules, for the test that removes some.
#[cfg(test)]
pub(super) fn program_of(rules: &[Rule]) -> Vec<Instruction> {
    compile(rules, ARCHITECTURE.expect("tests run where there is a filter"))
}

/// The kernel's answer with this filter; `None` if this architecture lacks the call.
#[cfg(test)]
pub(super) fn answer(program: &[Instruction], name: &str, arguments: [u64; 6]) -> Option<u32> {
    let number = numbers::number(name)?;
    Some(tests::interpret(program, &tests::here(number, arguments)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sandbox::seccomp::alternatives;

    /// What the kernel hands to a filter.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Call {
        number: u32,
        architecture: u32,
        arguments: [u64; 6],
    }

    impl Call {
        /// The 32-bit word at `offset` of `seccomp_data`, on a little-endian machine.
        fn word(&self, offset: u32) -> u32 {
            let mut bytes = Vec::new();
            bytes.extend(self.number.to_le_bytes());
            bytes.extend(self.architecture.to_le_bytes());
            bytes.extend([0; 8]);
            bytes.extend(self.arguments.iter().flat_map(|argument| argument.to_le_bytes()));
            let at = usize::try_from(offset).unwrap();
            u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
        }
    }

    /// Runs the program as the kernel does.
    pub(super) fn interpret(program: &[Instruction], call: &Call) -> u32 {
        let (mut at, mut accumulator) = (0, 0);
        loop {
            let Instruction {
                code,
                holds,
                fails,
                operand,
            } = program[at];
            at += 1;
            let chosen = |holding: bool| usize::from(if holding { holds } else { fails });
            match code {
                LOAD => accumulator = call.word(operand),
                AND => accumulator &= operand,
                JUMP => at += usize::try_from(operand).unwrap(),
                EQUAL => at += chosen(accumulator == operand),
                AT_LEAST => at += chosen(accumulator >= operand),
                RETURN => return operand,
                _ => panic!("unknown instruction {code:#x}"),
            }
        }
    }

    /// The table's own judgement, in 64-bit arguments.
    fn judged(call: &Call) -> u32 {
        let mine = |rule: &&Rule| {
            names(rule)
                .iter()
                .any(|name| numbers::number(name) == Some(call.number))
        };
        let holds = |c: &Masked| {
            let argument = call.arguments[usize::try_from(c.index).unwrap()];
            argument & u64::from(c.mask) == u64::from(c.value)
        };
        if Some(call.architecture) != ARCHITECTURE {
            return ERRNO | REFUSED;
        }
        for rule in RULES.iter().filter(mine) {
            if let Rule::Answered(_, errno) = rule {
                return ERRNO | errno;
            }
            if alternatives(rule).iter().any(|set| set.iter().all(holds)) {
                return ALLOW;
            }
        }
        ERRNO | REFUSED
    }

    pub(super) fn here(number: u32, arguments: [u64; 6]) -> Call {
        Call {
            number,
            architecture: ARCHITECTURE.unwrap(),
            arguments,
        }
    }

    /// Arguments at which a rule could turn, with and without high bits.
    fn argument() -> impl Strategy<Value = u64> {
        let low = prop_oneof![
            0_u64..64,
            Just(0x5412),
            Just(0x541c),
            Just(0x5413),
            Just(0x5423),
            Just(u64::from(u32::MAX)),
            (0_u32..32).prop_map(|bit| 1 << bit),
            any::<u32>().prop_map(u64::from),
        ];
        let high = prop_oneof![
            Just(0),
            Just(1_u64 << 32),
            any::<u64>().prop_map(|bits| bits << 32)
        ];
        (low, high).prop_map(|(low, high)| low | high)
    }

    #[test]
    fn the_program_fits_the_kernel_and_every_jump_stays_inside() {
        let program = &program().unwrap();
        assert!(program.len() <= 4096, "{} instructions", program.len());
        for (at, instruction) in program.iter().enumerate() {
            let far = match instruction.code {
                JUMP => usize::try_from(instruction.operand).unwrap(),
                _ => usize::from(instruction.holds.max(instruction.fails)),
            };
            assert!(at + 1 + far < program.len() || instruction.code == RETURN, "{at}");
        }
    }

    #[test]
    fn filter_matches_the_table_for_every_number() {
        let program = &program().unwrap();
        for number in (0..600).chain([X32 - 1, X32, X32 + 39, u32::MAX]) {
            for first in [0, 1, 2, 17, 40, 1 | 1 << 32] {
                let call = here(number, [first, 0, 0, 0, 0, 0]);
                assert_eq!(interpret(program, &call), judged(&call), "{call:?}");
            }
        }
    }

    #[test]
    fn denied_calls_do_not_affect_others() {
        let calls = ["memfd_create", "semget"].map(ToOwned::to_owned);
        let program = refusing(&calls).unwrap();
        for number in 0..600 {
            let is_named = calls.iter().any(|name| numbers::number(name) == Some(number));
            let verdict = if is_named { ERRNO | ENOSYS } else { ALLOW };
            assert_eq!(interpret(&program, &here(number, [0; 6])), verdict, "{number}");
        }
    }

    /// P13: calls of 32-bit processes and of x32 fail, and no process is killed for trying.
    #[test]
    fn rejects_other_abi_without_signal() {
        let program = &program().unwrap();
        for architecture in [0x4000_0003, 0, ARCHITECTURE.unwrap() ^ 1] {
            for number in 0..600 {
                let call = Call {
                    architecture,
                    ..here(number, [0; 6])
                };
                assert_eq!(interpret(program, &call), ERRNO | REFUSED);
            }
        }
        for number in 0..600 {
            assert_eq!(interpret(program, &here(number | X32, [0; 6])), ERRNO | REFUSED);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        /// P13: numbers and arguments of any width, high bits included.
        #[test]
        fn program_matches_the_table(number in 0_u32..480, arguments in prop::array::uniform6(argument())) {
            let call = here(number, arguments);
            prop_assert_eq!(interpret(&program().unwrap(), &call), judged(&call));
        }

        /// The calls with rules, more often.
        #[test]
        fn compiles_rules_unchanged(
            name in prop::sample::select(vec!["clone", "socket", "socketpair", "ioctl", "personality", "prlimit64", "setpriority", "mknodat", "sched_setattr"]),
            arguments in prop::array::uniform6(argument()),
        ) {
            let call = here(numbers::number(name).unwrap(), arguments);
            prop_assert_eq!(interpret(&program().unwrap(), &call), judged(&call));
        }
    }
}
