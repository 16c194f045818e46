//! What a recorder that runs for weeks has in memory: not more with each busy moment, however many processes, connections and
//! cgroups came and went, and although some of it was lost.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use systape_e2e::more::Cgroup;
use systape_e2e::{Background, Lab, lab};

const BURSTS: usize = 4;
/// Most seconds from one burst to the next: what it wrote is kept for five, and free memory is given back every ten.
const EVERY: u64 = 20;
/// Bytes by which quiet moments may differ: 10 to 30 MiB were seen. When what a burst needed was kept it was 150.
const NOISE: u64 = 64 << 20;

/// Bytes of a process's own.
fn memory(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the recorder is there");
    let kib = status.lines().find_map(|line| line.strip_prefix("RssAnon:")?.trim().strip_suffix(" kB")?.parse().ok());
    kib.map(|kib: u64| kib << 10).expect(&status)
}

#[test]
fn memory_stays_what_it_is() {
    let Some(lab) = Lab::with_bpf() else { return };
    fs::create_dir(lab.path("tapes")).expect("mkdir");
    let cgroup = Cgroup::new("systape-churn");
    let mut command = lab.command("sh");
    command.args(["-c", "exec \"$@\" > out 2> log", "sh"]).arg(lab::binary("record"));
    // small rings: the bursts overrun them
    command.args(["--dir", "tapes", "--keep-free", "0", "--last", "5s", "-g", "-F", "49", "-m", "1M", "--"]);
    command.arg("python3").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads/churn.py"));
    command.args([BURSTS.to_string(), EVERY.to_string()]).args(cgroup.as_ref().map(Cgroup::dir));
    let mut recorder = Background::start(command);
    let log = || fs::read_to_string(lab.path("log")).unwrap_or_default();

    let mut quiet: Vec<u64> = Vec::new();
    for burst in 1..=BURSTS {
        let deadline = Instant::now() + Duration::from_secs(120);
        while fs::read_to_string(lab.path("out")).unwrap_or_default().lines().count() < burst {
            assert!(Instant::now() < deadline && recorder.ended().is_none(), "burst {burst}: {}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
        let over = Instant::now();
        if burst == BURSTS - 1 {
            // five seconds before and five behind, no burst among them
            std::thread::sleep(Duration::from_secs(8));
            let run =
                lab::run(lab.command(lab::binary("record")).args(["trigger", "busy", "--dir", "tapes"])).expect(0);
            let tape = run.text().trim().to_owned();
            let info = lab.info(&tape);
            assert_eq!((&info["complete"], &info["clean_end"]), (&true.into(), &true.into()), "{info}");
            assert!(info["events"]["process"].as_u64().is_some_and(|events| events > 100), "{info}");
        }
        // the least of the time until the next burst: it is back at some moment of it, and then the next may come
        let mut least = memory(recorder.pid());
        let back = quiet.first().map_or(0, |first| first + NOISE / 4);
        while least > back && over.elapsed() < Duration::from_secs(EVERY - 1) {
            std::thread::sleep(Duration::from_millis(100));
            least = least.min(memory(recorder.pid()));
        }
        quiet.push(least);
        fs::write(lab.path(&format!("next-{burst}")), "").expect("next");
    }
    recorder.wait().expect(0);
    let mb: Vec<u64> = quiet.iter().map(|bytes| bytes >> 20).collect();
    println!("MiB after each burst: {mb:?}\n{}", log());
    let (least, most) = (quiet.iter().min().expect("bursts"), quiet.iter().max().expect("bursts"));
    assert!(most - least <= NOISE, "{mb:?} MiB {}", log());
}
