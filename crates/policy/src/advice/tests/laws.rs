//! Advice of several documents together.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use rust_decimal::Decimal;

use super::super::*;

const NOW: i64 = 1_800_000_000_000_000;
const STRATEGIES: [&str; 3] = ["none", "step_by_step", "custom:x"];
const KINDS: [&str; 3] = ["re_act", "reflexion", "other:x"];
const TASKS: [&str; 4] = ["alpha", "beta", "alpha beta", "a rather long text without any of them"];
const PATHS: [&str; 5] = ["a", "a/b", "b/a", "c.md", "b/c.md"];

fn names(all: [&'static str; 3]) -> impl Strategy<Value = Option<Vec<String>>> {
    let some = proptest::sample::subsequence(all.to_vec(), 1..=3).prop_shuffle();
    option::of(some.prop_map(|names| names.into_iter().map(str::to_owned).collect()))
}

fn texts(all: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    vec(proptest::sample::select(all).prop_map(str::to_owned), 0..3)
}

fn mostly() -> impl Strategy<Value = bool> {
    proptest::bool::weighted(0.9)
}

fn text_section() -> impl Strategy<Value = TextSection> {
    (mostly(), option::of("[a-z]{1,3}"), texts(&["alpha", "beta"]), option::of(1_u32..50), texts(&["h", "i"]))
        .prop_map(|(allow, reason, deny, max_chars, hints)| TextSection {
            allow,
            reason,
            deny,
            max_chars,
            hints,
        })
}

fn intent() -> impl Strategy<Value = IntentSection> {
    ("[a-c]", texts(&["alpha", "beta", "text"]), 1_i64..=100).prop_map(|(intent, phrases, percent)| {
        IntentSection {
            intent,
            when: IntentMatch::Any(phrases),
            confidence: Some(Decimal::new(percent, 2)),
            target_type: None,
            domain: None,
            at: crate::document::Position::default(),
        }
    })
}

fn section() -> impl Strategy<Value = AdviceSection> {
    let idle = (mostly(), option::of("[a-z]{1,3}"), option::of(1_u64..9)).prop_map(
        |(allow, reason, retry_after_ms)| IdleSection { allow, hours: None, reason, retry_after_ms },
    );
    let planning = (text_section(), names(STRATEGIES), option::of(any::<bool>())).prop_map(
        |(text, strategies, template)| PlanningSection {
            text,
            strategies,
            template: template.map(Into::into),
        },
    );
    let reasoning = (text_section(), names(KINDS)).prop_map(|(text, types)| ReasoningSection { text, types });
    let patterns = || texts(&["a", "*.md", "./b", "a/**"]);
    let context =
        (mostly(), option::of(patterns()), patterns(), option::of(1_u32..50), option::of(1_u32..50))
            .prop_map(|(allow, files, never, max_results, max_bytes)| ContextSection {
                allow,
                reason: None,
                files,
                never,
                max_results,
                max_bytes,
            });
    let sessions = proptest::sample::select(vec![MemorySessions::Own, MemorySessions::Principal]);
    let memory =
        (mostly(), option::of(sessions), option::of(1_u32..50)).prop_map(|(allow, sessions, max_results)| {
            MemorySection { allow, reason: None, sessions, max_results }
        });
    let rate_limit = (option::of(1_u64..50), option::of(any::<bool>()))
        .prop_map(|(max_wait_ms, skip_when_spent)| RateLimitSection { max_wait_ms, skip_when_spent });
    (
        option::of(idle),
        vec(intent(), 0..3),
        option::of(planning),
        option::of(reasoning),
        option::of(context),
        option::of(memory),
        option::of(rate_limit),
    )
        .prop_map(|(idle, intents, planning, reasoning, context, memory, rate_limit)| AdviceSection {
            idle,
            intents,
            planning,
            reasoning,
            context,
            memory,
            rate_limit,
            at: crate::document::Position::default(),
        })
}

fn advice(sections: &[AdviceSection]) -> Advice {
    Advice::new(sections.iter().map(|section| Arc::new(CompiledSection::compile(section).unwrap())).collect())
}

/// Permissions as truths: `true` is the wider.
fn permissions(advice: &Advice) -> Vec<bool> {
    let mut out = vec![advice.idle(Timestamp::from_micros(NOW)) == IdleAdvice::Allow];
    for task in TASKS {
        for offered in [&STRATEGIES[..], &STRATEGIES[..1], &STRATEGIES[1..], &[]] {
            out.push(matches!(advice.planning(task, offered), PlanningAdvice::Use { .. }));
        }
        for kind in KINDS {
            out.push(matches!(advice.reasoning(kind, task), ReasoningAdvice::Allow { .. }));
        }
    }
    let context = advice.context();
    out.extend(
        PATHS.iter().map(|path| matches!(&context, ContextAdvice::Allow(scope) if scope.matches(path))),
    );
    out.push(matches!(context, ContextAdvice::Allow(_)));
    out.push(matches!(advice.memory(), MemoryAdvice::Allow { .. }));
    out
}

/// Bounds, if anything is permitted: more is the wider.
fn bounds(advice: &Advice) -> Option<(u32, u32, u32, MemorySessions)> {
    match (advice.context(), advice.memory()) {
        (ContextAdvice::Allow(context), MemoryAdvice::Allow { sessions, max_results }) => {
            Some((context.max_results, context.max_bytes, max_results, sessions))
        }
        _ => None,
    }
}

fn waits(advice: &Advice) -> Vec<RateLimitAdvice> {
    (0..60).flat_map(|wait| [advice.rate_limit(wait, false), advice.rate_limit(wait, true)]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_order_of_documents_changes_no_permission_and_no_bound(sections in vec(section(), 0..5)) {
        let there = advice(&sections);
        let back: Vec<AdviceSection> = sections.into_iter().rev().collect();
        let back = advice(&back);
        prop_assert_eq!(permissions(&there), permissions(&back));
        prop_assert_eq!(bounds(&there), bounds(&back));
        prop_assert_eq!(waits(&there), waits(&back));
    }

    #[test]
    fn another_document_never_permits_what_was_refused(sections in vec(section(), 0..4), more in section()) {
        let fewer = permissions(&advice(&sections));
        let all: Vec<AdviceSection> = sections.into_iter().chain([more.clone()]).collect();
        let together = permissions(&advice(&all));
        // The default length is far above every task here, so that writing a bound can only narrow.
        for (before, after) in fewer.iter().zip(&together) {
            prop_assert!(*before || !*after);
        }
        let alone = permissions(&advice(&[more]));
        for (before, after) in alone.iter().zip(&together) {
            prop_assert!(*before || !*after);
        }
    }

    #[test]
    fn a_written_bound_is_never_widened_by_another_document(sections in vec(section(), 1..4)) {
        let together = advice(&sections);
        if let Some((results, bytes, recalled, _)) = bounds(&together) {
            for section in &sections {
                let context = section.context.as_ref();
                prop_assert!(context.and_then(|found| found.max_results).is_none_or(|written| results <= written));
                prop_assert!(context.and_then(|found| found.max_bytes).is_none_or(|written| bytes <= written));
                let memory = section.memory.as_ref();
                prop_assert!(memory.and_then(|found| found.max_results).is_none_or(|written| recalled <= written));
            }
        }
    }

    #[test]
    fn the_same_document_twice_says_what_it_says_once(section in section()) {
        let once = advice(std::slice::from_ref(&section));
        let twice = advice(&[section.clone(), section]);
        prop_assert_eq!(permissions(&once), permissions(&twice));
        prop_assert_eq!(bounds(&once), bounds(&twice));
        prop_assert_eq!(waits(&once), waits(&twice));
        for task in TASKS {
            prop_assert_eq!(once.planning(task, &STRATEGIES), twice.planning(task, &STRATEGIES));
            prop_assert_eq!(once.reasoning(KINDS[0], task), twice.reasoning(KINDS[0], task));
            prop_assert_eq!(once.intent(task), twice.intent(task));
        }
    }

    #[test]
    fn a_chosen_strategy_was_offered(sections in vec(section(), 0..4), offered in proptest::sample::subsequence(STRATEGIES.to_vec(), 1..=3)) {
        if let PlanningAdvice::Use { strategy, .. } = advice(&sections).planning("x", &offered) {
            prop_assert!(offered.contains(&strategy));
        }
    }

    #[test]
    fn any_text_gets_an_answer(section in section(), text in "\\PC{0,40}") {
        let advice = advice(&[section]);
        let _ = (advice.intent(&text), advice.planning(&text, &[&text]), advice.reasoning(&text, &text));
        if let ContextAdvice::Allow(scope) = advice.context() {
            let _ = scope.matches(&text);
        }
    }
}
