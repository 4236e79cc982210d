//! Forks children so that they die with this process: on Linux by the parent-death signal, sent when the
//! forking thread ends; therefore that thread lives as long as this process.

#[cfg(target_os = "linux")]
use std::os::unix::process::CommandExt;
use std::{
    io,
    process::{Child, Command},
    sync::{OnceLock, mpsc},
    thread,
};

/// Makes the kernel kill the child when this process ends in any way.
#[cfg(target_os = "linux")]
pub(super) fn die_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    let arm = move || {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // The parent may have died before the signal was set.
        match rustix::process::getppid() == Some(parent) {
            true => Ok(()),
            false => Err(rustix::io::Errno::SRCH.into()),
        }
    };
    // SAFETY: between fork and exec the closure makes two system calls and builds an `io::Error` from a
    // number; it neither allocates nor takes a lock.
    #[allow(unsafe_code)]
    unsafe {
        command.pre_exec(arm);
    }
}

/// Other systems have no parent-death signal.
#[cfg(not(target_os = "linux"))]
pub(super) fn die_with_parent(_: &mut Command) {}

type SpawnOrder = (Command, mpsc::SyncSender<io::Result<Child>>);

/// Starts a command from one thread that lives as long as this process.
///
/// Linux sends the parent-death signal when the *thread* that forked ends, so a child forked by a worker of
/// some runtime would die with that worker.
pub(super) fn spawn_on_permanent_thread(command: Command) -> io::Result<Child> {
    static ORDERS: OnceLock<mpsc::Sender<SpawnOrder>> = OnceLock::new();
    let orders = ORDERS.get_or_init(|| {
        let (orders, inbox) = mpsc::channel::<SpawnOrder>();
        let spawn_all = move || {
            for (mut command, reply) in inbox {
                // The receiver waits for exactly this reply; it cannot be gone.
                let _ = reply.send(command.spawn());
            }
        };
        // When the thread cannot start, the receiver is dropped and every request gets the error below.
        let _ = thread::Builder::new().name("spawn".into()).spawn(spawn_all);
        orders
    });
    let (reply, answer) = mpsc::sync_channel(1);
    let gone = || io::Error::other("the thread that starts children is gone");
    orders.send((command, reply)).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}
