//! Who took part in the slowest exchanges, and what their parts took.

use anyhow::Result;
use rustc_hash::FxHashMap;

use super::rows::SlowAcross;
use super::side::TapeSide;
use crate::asked::config::Config;
use crate::reports::Context;
use crate::reports::requests;
use systape_answers::derive::across::ExchangeSeen;
use systape_answers::derive::exchanges::ends::EndAddresses;
use systape_answers::derive::exchanges::{EndSide, read};
use systape_answers::values::open::open;

/// Reads the tapes once more, for who took part in `rows` and what the parts of them took.
pub(super) fn find(config: &Config, sides: &[TapeSide], rows: &mut [SlowAcross]) -> Result<()> {
    for (at, side) in sides.iter().enumerate() {
        let mut wanted: FxHashMap<(EndAddresses, u64), (usize, EndSide)> = FxHashMap::default();
        for (number, row) in rows.iter().enumerate() {
            let one = &row.joined;
            if one.sides.0 == at {
                wanted.insert((one.key.0.clone(), one.client.begin), (number, EndSide::Client));
            }
            if one.sides.1 == at {
                wanted.insert((one.key.1.clone(), one.server.begin), (number, EndSide::Server));
            }
        }
        if wanted.is_empty() {
            continue;
        }
        let tape = open(&side.path)?;
        let config = config.of(&side.path);
        let context = Context::about(&config, &tape, &requests::MADE_OF)?;
        // what cannot be read is known from the first time
        let (_known, _) = read::read_knowing(&context.question, side.known.clone(), |exchange| {
            let key = (exchange.end.key().addresses, ExchangeSeen::of(&exchange).begin);
            if let Some((number, as_what)) = wanted.get(&key).filter(|(_, as_what)| *as_what == exchange.side) {
                let row = &mut rows[*number];
                *(if *as_what == EndSide::Client { &mut row.client } else { &mut row.server }) = Some(exchange);
            }
        });
    }
    Ok(())
}
