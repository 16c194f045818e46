//! Any bytes as what `record trigger` and `record status` ask, and as what they are answered.
#![no_main]

use std::time::{Duration, Instant};

use systape_abi::is_unsafe;
use systape_cli::control::{self, MOST_REQUEST, Request};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(line) = control::read_request(&mut &*bytes, Instant::now() + Duration::from_secs(60)) {
        assert!(line.len() <= MOST_REQUEST);
        match Request::parse(&line) {
            // what it was read from is what it is written as, but for bytes that are no text
            Ok(request) => assert_eq!(Request::parse(request.line().trim_end_matches('\n').as_bytes()), Ok(request)),
            Err(why) => assert!(!why.contains(is_unsafe)),
        }
    }
    match control::read_answer(&mut &*bytes) {
        Ok(answer) => {
            let (Ok(shown) | Err(shown)) = control::tape(&answer).map(str::to_owned);
            assert!(!shown.contains(is_unsafe));
            assert!(control::status(&answer).iter().all(|line| !line.contains(is_unsafe)));
            let json = control::status_json(&answer);
            assert!(!json.contains(is_unsafe));
            assert!(control::read_answer(&mut json.as_bytes()).is_ok());
        }
        Err(why) => assert!(!why.contains(is_unsafe)),
    }
});
