//: what The pool of the Rust Book: four threads behind a mutex around a receiver; a job each 80 ms.
//: healthy
use std::sync::{mpsc, Arc, Mutex};
use std::thread;
use std::time::Duration;

type Job = Box<dyn FnOnce() + Send>;

fn main() {
    let (sender, receiver) = mpsc::channel::<Job>();
    let receiver = Arc::new(Mutex::new(receiver));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let receiver = Arc::clone(&receiver);
            thread::spawn(move || loop {
                let job = receiver.lock().unwrap().recv();
                match job {
                    Ok(job) => job(),
                    Err(_) => break,
                }
            })
        })
        .collect();
    for _ in 0..14 {
        thread::sleep(Duration::from_millis(80));
        for _ in 0..2 {
            sender.send(Box::new(|| thread::sleep(Duration::from_millis(1)))).unwrap();
        }
    }
    drop(sender);
    for thread in threads {
        thread.join().unwrap();
    }
}
