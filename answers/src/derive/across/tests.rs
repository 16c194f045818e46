//! Two machines whose clocks differ by any amount, and run apart.

use proptest::prelude::*;

use super::*;

/// A true exchange: when it is asked, how long the way there, the service and the way back take, and its sizes, ns and bytes.
#[derive(Clone, Copy, Debug)]
struct Truth {
    at: u64,
    there: u64,
    serve: u64,
    back: u64,
    sizes: (u64, u64),
}

fn amount(bytes: u64) -> Amount {
    Amount { bytes, short: false }
}

/// How the end that asks sees it, and the other end by a clock that is `ahead` and runs faster by `ppm`.
fn seen(truth: &[Truth], ahead: i64, ppm: i64) -> (Vec<ExchangeSeen>, Vec<ExchangeSeen>) {
    let clock = |ts: u64| (ts as i64 + ahead + ts as i64 / 1_000_000 * ppm) as u64;
    let client = |one: &Truth| ExchangeSeen {
        begin: one.at,
        answered: Some(one.at + one.there + one.serve + one.back),
        total: Some(one.there + one.serve + one.back),
        received: amount(one.sizes.1),
        sent: amount(one.sizes.0),
        whole: true,
        ..ExchangeSeen::default()
    };
    let server = |one: &Truth| ExchangeSeen {
        begin: clock(one.at + one.there),
        answered: Some(clock(one.at + one.there + one.serve)),
        total: Some(one.serve),
        received: amount(one.sizes.0),
        sent: amount(one.sizes.1),
        whole: true,
        ..ExchangeSeen::default()
    };
    (truth.iter().map(client).collect(), truth.iter().map(server).collect())
}

fn connection() -> impl Strategy<Value = Vec<Truth>> {
    let one = (1_000_000_u64..40_000_000, 20_000_u64..300_000, 10_000_u64..5_000_000, 20_000_u64..300_000, 0_u64..3);
    prop::collection::vec(one, 20..120).prop_map(|steps| {
        let mut at = 1 << 40;
        let each = steps.into_iter().map(|(pause, there, serve, back, size)| {
            let one = Truth { at, there, serve, back, sizes: (100 + size, 200) };
            at += there + serve + back + pause;
            one
        });
        each.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the clocks are, each exchange is the right one of the other tape, and the true difference lies within the bounds.
    #[test]
    fn exchanges_find_each_other_by_any_clock(
        truths in prop::collection::vec(connection(), 1..4),
        ahead in -3_000_000_000_i64..3_000_000_000,
        ppm in -100_i64..100,
        cut in (0_usize..6, 0_usize..6),
        begun: bool,
        flipped: bool,
    ) {
        let mut shared = Vec::new();
        for truth in &truths {
            let (mut client, mut server) = seen(truth, ahead, ppm);
            if begun {
                client[0].opens = true;
                server[0].opens = true;
            } else {
                // each tape begins at another exchange
                client.drain(..cut.0);
                server.drain(..cut.1);
            }
            shared.push(match flipped {
                false => SharedConnection { first: client, second: server, first_asks: true },
                true => SharedConnection { first: server, second: client, first_asks: false },
            });
        }
        let joined = join(&shared).expect("no contradiction").expect("some are found");
        let shift = if begun { 0 } else { cut.0 as i64 - cut.1 as i64 };
        for one in &joined.exchanges {
            let (client, server) = if flipped { (one.second, one.first) } else { (one.first, one.second) };
            prop_assert_eq!(server as i64 - client as i64, shift);
        }
        let expected: usize = truths.iter().map(|t| t.len() - if begun { 0 } else { cut.0.max(cut.1) }).sum();
        prop_assert_eq!(joined.exchanges.len(), expected);
        for truth in &truths {
            for one in truth.iter().step_by(5) {
                let real = ahead + one.at as i64 / 1_000_000 * ppm;
                let (at, real) = if flipped { (one.at as i64 + real, -real) } else { (one.at as i64, real) };
                let bounds = joined.clocks.at(at);
                // of the time between its two ends
                let slack = 1_000_000;
                prop_assert!(bounds.least <= real + slack && real - slack <= bounds.most, "{bounds:?} {real}");
            }
        }
    }
}

fn steady(count: u64) -> Vec<Truth> {
    (0..count)
        .map(|n| Truth { at: (1 << 40) + n * 10_000_000, there: 100_000, serve: 50_000, back: 100_000, sizes: (9, 9) })
        .collect()
}

#[test]
fn a_heartbeat_from_before_is_not_guessed() {
    let (client, server) = seen(&steady(100), 0, 0);
    let older = SharedConnection { first: client, second: server, first_asks: true };
    assert!(join(std::slice::from_ref(&older)).unwrap().is_none(), "each beat looks like the next");
    // another connection knows the clocks
    let (mut client, mut server) = seen(&steady(3), 0, 0);
    (client[0].opens, server[0].opens) = (true, true);
    let begun = SharedConnection { first: client, second: server, first_asks: true };
    let joined = join(&[older, begun]).unwrap().unwrap();
    assert_eq!((joined.exchanges.len(), joined.unsure), (103, 0));
    assert!(joined.exchanges.iter().all(|one| one.first == one.second), "{joined:?}");
    let (_, bounds) = joined.clocks.narrowest();
    assert!(bounds.least <= 0 && 0 <= bounds.most && bounds.most - bounds.least <= 205_000, "{bounds:?}");
}

#[test]
fn lost_calls_split_a_sequence_and_the_rest_is_found() {
    let mut truth = steady(60);
    // pauses that no two have in common
    truth.iter_mut().enumerate().for_each(|(n, one)| one.at += (n * n) as u64 * 777_000);
    let (client, mut server) = seen(&truth, 1_500_000_000, 0);
    // three in the middle look like one
    server.drain(30..32);
    server[30] = ExchangeSeen { whole: false, unsure: true, ..server[30] };
    let joined = join(&[SharedConnection { first: client, second: server, first_asks: true }]).unwrap();
    let joined = joined.expect("both parts are found");
    for one in &joined.exchanges {
        assert_eq!(one.first, one.second + if one.second < 30 { 0 } else { 2 }, "{one:?}");
    }
}

#[test]
fn clocks_that_contradict_themselves_are_said() {
    let begun = |ahead: i64| {
        let (mut client, mut server) = seen(&steady(20), ahead, 0);
        (client[0].opens, server[0].opens) = (true, true);
        SharedConnection { first: client, second: server, first_asks: true }
    };
    assert_eq!(join(&[begun(0), begun(5_000_000)]).unwrap_err(), ClocksContradict);
    assert!(join(&[begun(0), begun(50_000)]).is_ok());
}

#[test]
fn another_size_is_another_exchange() {
    let (mut client, mut server) = seen(&steady(20), 0, 0);
    (client[0].opens, server[0].opens) = (true, true);
    server[7].received.bytes += 1;
    assert!(join(&[SharedConnection { first: client, second: server, first_asks: true }]).unwrap().is_none());
}
