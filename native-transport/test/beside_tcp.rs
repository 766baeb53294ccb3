//! The product's congestion control beside TCP: flows of ours, of Cubic and of BBR share one simulated bottleneck.

mod bottleneck;
mod senders;

use bottleneck::{run, run_with_jitter, Outcome, RATE};
use senders::{bbr, cubic, ours, ours_to_a_browser, Sender};

/// Runs flows of theirs, then of ours. Returns the mean rate of our flows over the mean rate of theirs.
fn tell(
    what: &str,
    theirs: Vec<Box<dyn Sender>>,
    ours: Vec<Box<dyn Sender>>,
    queue_products: f64,
    seed: u64,
) -> (f64, Outcome) {
    let split = theirs.len();
    let outcome = run(theirs.into_iter().chain(ours).collect(), queue_products, 60.0, seed);
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    let ratio = mean(&outcome.rates[split..]) / mean(&outcome.rates[..split]);
    println!(
        "{what}, queue {queue_products}: ratio {ratio:.2}, rates {:.0?}, lost {:.3?}, queue {:.2}",
        outcome.rates, outcome.losses, outcome.queue_mean
    );
    (ratio, outcome)
}

/// The median over eleven seeds, because the seed decides which of several states two flows settle in.
fn median_of(ratio: impl Fn(u64) -> f64) -> f64 {
    let mut ratios: Vec<f64> = (0..11).map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    ratios[5]
}

/// This model of BBR takes more from our flow than the kernel's BBR does. `npm run bench -- transport` measures that.
#[test]
fn neither_starves_nor_is_starved_beside_one_flow_of_tcp() {
    let cases: [(&str, fn() -> Box<dyn Sender>, f64, f64, f64); 5] = [
        ("bbr", bbr, 1.0, 0.33, 1.0),
        ("bbr", bbr, 2.5, 0.5, 3.0),
        ("cubic", cubic, 0.5, 0.5, 2.0),
        ("cubic", cubic, 1.0, 0.5, 2.0),
        ("cubic", cubic, 2.5, 0.4, 2.0),
    ];
    for (name, rival, queue_products, least, most) in cases {
        let ratio = median_of(|seed| {
            let (ratio, outcome) = tell(name, vec![rival()], vec![ours()], queue_products, seed);
            assert!(outcome.losses[1] < 0.12, "{name}, queue {queue_products}: {:.3} of ours lost", outcome.losses[1]);
            ratio
        });
        assert!((least..=most).contains(&ratio), "{name}, queue {queue_products}: {ratio}");
    }
}

/// Beside BBR, with a queue of one product, such a flow gets a quarter of BBR's rate. A flow of Cubic gets as much.
#[test]
fn gathered_acknowledgements_cost_little_beside_cubic() {
    for queue_products in [0.5, 1.0, 2.5] {
        let ratio = median_of(|seed| {
            tell("cubic, ours to a browser", vec![cubic()], vec![ours_to_a_browser()], queue_products, seed).0
        });
        assert!((0.38..=2.0).contains(&ratio), "queue {queue_products}: {ratio}");
    }
}

#[test]
fn gathered_acknowledgements_leave_no_link_idle() {
    for queue_products in [1.0, 2.5] {
        let outcome = run(vec![ours_to_a_browser()], queue_products, 60.0, 0);
        println!(
            "alone to a browser, queue {queue_products}: {:.3}, queue {:.2}",
            outcome.rates[0] / RATE,
            outcome.queue_mean
        );
        assert!(
            outcome.rates[0] > 0.96 * RATE && outcome.queue_mean < 0.5,
            "queue {queue_products}: {:?}, queue {}",
            outcome.rates,
            outcome.queue_mean
        );
    }
}

/// In a crowd, a flow that ignores losses starves the flows that react to them.
#[test]
fn a_crowd_of_tcp_is_joined_as_one_more_each() {
    for queue_products in [1.0, 2.5] {
        let (ratio, outcome) =
            tell("cubic and ours", vec![cubic(), cubic(), cubic()], vec![ours(), ours(), ours()], queue_products, 0);
        assert!((0.5..=2.2).contains(&ratio), "queue {queue_products}: {ratio}");
        assert!(outcome.losses.iter().all(|&lost| lost < 0.05), "queue {queue_products}: {:.3?} lost", outcome.losses);
    }
}

#[test]
fn flows_of_ours_share_alike_and_lose_little() {
    for (queue_products, count) in [(1.0, 2), (2.5, 2), (1.0, 3)] {
        let (ratio, outcome) = tell("ours", vec![ours()], (1..count).map(|_| ours()).collect(), queue_products, 0);
        assert!((0.5..=2.0).contains(&ratio), "queue {queue_products}: {ratio}");
        assert!(outcome.losses.iter().all(|&lost| lost < 0.03), "queue {queue_products}: {:.3?} lost", outcome.losses);
    }
}

/// Two of our flows must not take each other for flows that ignore losses.
#[test]
fn several_beside_bbr_lose_no_more_than_one() {
    for (theirs, count) in [(1, 2), (2, 1)] {
        let (ratio, outcome) =
            tell("bbr and ours", (0..theirs).map(|_| bbr()).collect(), (0..count).map(|_| ours()).collect(), 1.0, 0);
        assert!((0.3..=1.5).contains(&ratio), "{ratio}");
        assert!(outcome.losses.iter().all(|&lost| lost < 0.15), "{:.3?} lost", outcome.losses);
    }
}

/// Checks the models themselves.
#[test]
fn rivals_alone_fill_the_link_and_share_with_each_other() {
    for rival in [bbr, cubic] {
        let outcome = run(vec![rival(), rival()], 1.0, 60.0, 0);
        let ratio = outcome.rates[1] / outcome.rates[0];
        assert!((0.4..=2.5).contains(&ratio), "{ratio}");
        assert!(outcome.rates.iter().sum::<f64>() > 0.9 * RATE, "{:?}", outcome.rates);
    }
}

/// A path with jitter, such as radio, needs more bytes in flight than its lowest round trip suggests.
#[test]
fn jitter_leaves_no_link_idle() {
    for (jitter, least) in [(0.01, 0.93), (0.02, 0.9), (0.04, 0.75), (0.07, 0.5)] {
        let share = median_of(|seed| run_with_jitter(vec![ours()], 2.5, 2.0, seed, jitter).rates[0] / RATE);
        println!("alone, jitter {jitter}: {share:.3} of the link in the first two seconds");
        assert!(share > least, "jitter {jitter}: {share}");
    }
}
