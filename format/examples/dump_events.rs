use systape_format::reader::Tape;
fn main() {
    let tape = Tape::open(std::path::Path::new(&std::env::args().nth(1).unwrap())).unwrap();
    let what = std::env::args().nth(2).unwrap_or_default();
    if what == "run" {
        for i in 0..tape.checkpoints() {
            let cp = tape.checkpoint(i).unwrap();
            println!("{} {:?}", cp.ts, cp.clock);
            for r in &cp.run {
                let t = cp.tasks.iter().find(|t| t.utid == r.utid);
                println!("{:?} {:?}", r, t.map(|t| (t.tid, String::from_utf8_lossy(&t.comm).into_owned())));
            }
            for c in &cp.commands {
                println!("{} {:?}", c.upid, String::from_utf8_lossy(&c.argv));
            }
        }
    }
    for i in 0..tape.segments().len() {
        let s = tape.segment(i);
        let d = s.dict().unwrap();
        let n = |t: u32| {
            let t = &d.tasks[t as usize];
            format!("{}:{}/{}", String::from_utf8_lossy(&t.comm), t.pid, t.tid)
        };
        if what == "sig" {
            for e in s.signals(&d).unwrap() {
                println!(
                    "{:?} {} -> {} call {:?} path {:?} argv {:?}",
                    e,
                    e.sender.map(n).unwrap_or_default(),
                    n(e.target),
                    e.call.map(|c| d.calls[c as usize].nr),
                    String::from_utf8_lossy(&e.call_path),
                    String::from_utf8_lossy(&e.argv)
                );
            }
        }
        if what == "blk" {
            for e in s.blocks(&d).unwrap() {
                println!(
                    "dev {}:{} {:#x} sec {} bytes {} q {} lat {} cause {:?} owner {:?} origin {:?} merged {} ino {} cg {} err {} layer {:?}",
                    e.dev >> 20,
                    e.dev & 0xfffff,
                    e.flags,
                    e.sector,
                    e.bytes,
                    e.issued.wrapping_sub(e.queued) as i64,
                    e.complete.wrapping_sub(e.issued) as i64,
                    e.cause,
                    e.owner.map(n),
                    e.origin.map(n),
                    e.merged,
                    e.inode,
                    e.cgroup_id,
                    e.errno,
                    e.layer
                );
            }
        }
        if what == "wake" {
            for e in s.wakeups(&d).unwrap() {
                println!(
                    "{} cpu{} {:?} -> {} cpu{} new {}",
                    e.ts,
                    e.cpu,
                    e.waker.map(n),
                    n(e.wakee),
                    e.target_cpu,
                    e.new
                );
            }
        }
        if what == "sw" {
            for e in s.switches(&d).unwrap() {
                println!("{} cpu{} {} -> {} {:#x} {}", e.ts, e.cpu, n(e.prev), n(e.next), e.prev_state, e.preempted);
            }
        }
        if what == "net" {
            for e in s.nets(&d).unwrap() {
                println!("{:?} {:?}", e, e.task.map(n));
            }
        }
        if what == "ur" {
            for e in s.urings(&d).unwrap() {
                println!("{:?} {:?}", e, n(e.task));
            }
        }
    }
}
