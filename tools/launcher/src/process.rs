//! A child process: its specification (`ProcessSpec`) and the running child (`Process`).
//!
//! Every child runs in its own process group, so that a Ctrl-C at the terminal reaches only the
//! launcher, which then stops its children in order. On Linux a child is killed by the kernel when the
//! launcher dies, even by `kill -9`.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::{self, Write as _},
    os::{fd::OwnedFd, unix::process::CommandExt},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use command_fds::{CommandFdExt, FdMapping};
use parking_lot::Mutex;
pub use rustix::process::Signal;
use rustix::process::{Pid, WaitId, WaitIdOptions};
use tokio::sync::watch;

use crate::folder;

mod fork;

/// The variables that a child keeps when its environment is cleared.
const INHERITED_VARIABLES: [&str; 8] =
    ["PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/// The first descriptor that carries an inherited socket, by the convention of `LISTEN_FDS`.
const FIRST_SOCKET: i32 = 3;

/// What to run and how; the same spec can be started any number of times.
#[derive(Clone)]
pub struct ProcessSpec {
    /// Its name in logs and listings, such as `query-0`.
    pub name: String,
    /// The program's file.
    pub program: PathBuf,
    /// Its arguments, without the program itself.
    pub args: Vec<String>,
    /// Variables set for it; a later entry of the same name wins.
    pub env: Vec<(String, String)>,
    /// Whether it inherits nothing but the basic variables (`PATH`, `HOME` and the like).
    pub clear_env: bool,
    /// The user and group it runs as; `None` for those of this process. Needs root.
    pub user: Option<(u32, u32)>,
    /// Its working directory; `None` for that of this process.
    pub directory: Option<PathBuf>,
    /// Listening sockets it inherits as descriptors 3 and up, named in `LISTEN_FDNAMES`.
    pub sockets: Vec<(String, Arc<OwnedFd>)>,
    /// The file to which its standard output and standard error are appended; missing folders are created.
    pub log: PathBuf,
    /// The signal that asks it to stop.
    pub stop_signal: Signal,
    /// How long it may take to stop before it is killed.
    pub grace: Duration,
}

impl ProcessSpec {
    /// The specification of `program` without arguments, stopped by SIGTERM with a grace of ten seconds.
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>, log: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            clear_env: false,
            user: None,
            directory: None,
            sockets: Vec::new(),
            log: log.into(),
            stop_signal: Signal::TERM,
            grace: Duration::from_secs(10),
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Sets a variable of the child.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    fn command(&self) -> io::Result<Command> {
        let log = self.open_log()?;
        let mut command = Command::new(&self.program);
        command.args(&self.args);
        if self.clear_env {
            command.env_clear();
            command.envs(INHERITED_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        }
        for name in ["LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID"] {
            command.env_remove(name);
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
        self.pass_sockets(&mut command)?;
        fork::die_with_parent(&mut command);
        Ok(command)
    }

    fn open_log(&self) -> io::Result<File> {
        if let Some(folder) = self.log.parent() {
            folder::create(folder)?;
        }
        OpenOptions::new().create(true).append(true).open(&self.log)
    }

    fn pass_sockets(&self, command: &mut Command) -> io::Result<()> {
        if self.sockets.is_empty() {
            return Ok(());
        }
        let mut mappings = Vec::with_capacity(self.sockets.len());
        for (child_fd, (_, socket)) in (FIRST_SOCKET..).zip(&self.sockets) {
            mappings.push(FdMapping { parent_fd: socket.try_clone()?, child_fd });
        }
        command.fd_mappings(mappings).map_err(io::Error::other)?;
        let names: Vec<&str> = self.sockets.iter().map(|(name, _)| name.as_str()).collect();
        command.env("LISTEN_FDS", names.len().to_string()).env("LISTEN_FDNAMES", names.join(":"));
        Ok(())
    }
}

impl fmt::Debug for ProcessSpec {
    /// Shows the names of the variables without their values, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variables: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("ProcessSpec")
            .field("name", &self.name)
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &variables)
            .field("user", &self.user)
            .field("log", &self.log)
            .finish_non_exhaustive()
    }
}

/// A child that was started. Dropping it kills the child.
#[derive(Debug)]
pub struct Process {
    pid: Pid,
    stop_signal: Signal,
    grace: Duration,
    /// The status once the child has ended. Signals are sent and the child is reaped under this lock, so that
    /// no signal reaches another process with a reused pid.
    ended: Arc<Mutex<Option<ExitStatus>>>,
    exit: watch::Receiver<Option<ExitStatus>>,
}

impl Process {
    /// Starts a child. Its log says so if the program cannot be started.
    ///
    /// # Errors
    /// The program, its log or a thread cannot be opened or started.
    pub fn spawn(spec: &ProcessSpec) -> io::Result<Self> {
        let child = fork::spawn_on_permanent_thread(spec.command()?).inspect_err(|error| {
            let line = format!("cannot start {}: {error}\n", spec.program.display());
            // The caller gets the error in any case.
            let _ = spec.open_log().and_then(|mut log| log.write_all(line.as_bytes()));
        })?;
        let pid = Pid::from_child(&child);
        let ended = Arc::new(Mutex::new(None));
        let (exit_sender, exit) = watch::channel(None);
        let process = Self { pid, stop_signal: spec.stop_signal, grace: spec.grace, ended, exit };
        let ended = Arc::clone(&process.ended);
        thread::Builder::new()
            .name(format!("wait-{}", spec.name))
            .stack_size(64 * 1024)
            .spawn(move || await_end(child, &ended, &exit_sender))?;
        Ok(process)
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// The status with which the child ended, or `None` while it lives.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        *self.exit.borrow()
    }

    /// Waits until the child has ended. Cancel safe.
    ///
    /// # Errors
    /// Its status is unknown.
    pub async fn wait(&self) -> io::Result<ExitStatus> {
        let mut exit = self.exit.clone();
        let status = exit.wait_for(Option::is_some).await.map_err(io::Error::other)?;
        status.ok_or_else(|| io::Error::other("the child ended without a status"))
    }

    /// Sends a signal to the child; fails with `ESRCH` when it has ended.
    ///
    /// # Errors
    /// It has ended (`ESRCH`), or belongs to another user.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let ended = self.ended.lock();
        if ended.is_some() {
            return Err(rustix::io::Errno::SRCH.into());
        }
        Ok(rustix::process::kill_process(self.pid, signal)?)
    }

    /// Asks the child to stop, waits for at most its grace, then kills it and what is left of its group.
    ///
    /// A child that was frozen by SIGSTOP is woken first. Stopping a child that has ended is no error.
    ///
    /// # Errors
    /// Its status is unknown.
    pub async fn stop(&self) -> io::Result<ExitStatus> {
        if self.signal(self.stop_signal).is_ok() && self.signal(Signal::CONT).is_ok() {
            match tokio::time::timeout(self.grace, self.wait()).await {
                Ok(status) => return status,
                Err(_) => self.kill_group(),
            }
        }
        self.wait().await
    }

    /// Kills the child and its process group at once.
    pub fn kill_group(&self) {
        let ended = self.ended.lock();
        if ended.is_none() {
            // Both fail only when the child is ending already.
            let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
            let _ = rustix::process::kill_process(self.pid, Signal::KILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill_group();
    }
}

/// Waits for the child without reaping it, then reaps it under the lock and sends its status.
fn await_end(
    mut child: Child,
    ended: &Mutex<Option<ExitStatus>>,
    status_sender: &watch::Sender<Option<ExitStatus>>,
) {
    let pid = Pid::from_child(&child);
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let waited = rustix::io::retry_on_intr(|| rustix::process::waitid(WaitId::Pid(pid), options));
    let mut ended = ended.lock();
    // What it started and left, while its number still names the group. Fails when it left nothing.
    if waited.is_ok() {
        let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    }
    let status = child.wait().ok();
    *ended = status;
    drop(ended);
    status_sender.send_replace(status);
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, os::unix::process::ExitStatusExt};

    use mesh_testbed::{eventually, retry};

    use super::*;

    const TIME_LIMIT: Duration = Duration::from_secs(10);

    fn shell(script: &str) -> (tempfile::TempDir, ProcessSpec) {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("logs/shell.log");
        (folder, ProcessSpec::new("shell", "/bin/sh", log).arg("-c").arg(script))
    }

    async fn log_has(spec: &ProcessSpec, text: &str) -> String {
        retry(TIME_LIMIT, async || {
            let log = std::fs::read_to_string(&spec.log).unwrap_or_default();
            if log.contains(text) { Ok(log) } else { Err(format!("no {text:?} in {log:?}")) }
        })
        .await
    }

    #[tokio::test]
    async fn both_outputs_are_appended_to_the_log_and_the_status_is_returned() {
        let (_folder, spec) = shell("echo out; echo err >&2; exit 7");
        for _ in 0..2 {
            let process = Process::spawn(&spec).unwrap();
            assert_eq!(process.wait().await.unwrap().code(), Some(7));
            assert_eq!(process.exit_status().and_then(|status| status.code()), Some(7));
            assert!(process.signal(Signal::TERM).is_err());
        }
        assert_eq!(std::fs::read_to_string(&spec.log).unwrap(), "out\nerr\nout\nerr\n");
    }

    #[tokio::test]
    async fn a_child_that_ignores_the_stop_signal_is_killed_after_the_grace() {
        let (_folder, mut spec) = shell("trap '' TERM; echo armed; while :; do sleep 0.05; done");
        spec.grace = Duration::from_millis(100);
        let process = Process::spawn(&spec).unwrap();
        log_has(&spec, "armed").await;
        assert_eq!(process.stop().await.unwrap().signal(), Some(9));
    }

    #[tokio::test]
    async fn a_frozen_child_still_stops_by_its_stop_signal() {
        let (_folder, spec) = shell("trap 'exit 3' TERM; echo armed; while :; do sleep 0.05; done");
        let process = Process::spawn(&spec).unwrap();
        log_has(&spec, "armed").await;
        process.signal(Signal::STOP).unwrap();
        assert_eq!(process.stop().await.unwrap().code(), Some(3));
    }

    #[tokio::test]
    async fn a_dropped_process_is_killed_with_its_group() {
        let (_folder, spec) = shell("sleep 600 & echo $! $$; wait");
        let process = Process::spawn(&spec).unwrap();
        let log = log_has(&spec, "\n").await;
        let pids: Vec<i32> = log.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        assert_eq!(pids[1].unsigned_abs(), process.pid());
        drop(process);
        until_ended(&pids).await;
    }

    #[tokio::test]
    async fn what_a_child_started_ends_with_it() {
        let (_folder, spec) = shell("sleep 600 & echo $!");
        let process = Process::spawn(&spec).unwrap();
        assert_eq!(process.wait().await.unwrap().code(), Some(0));
        let log = log_has(&spec, "\n").await;
        until_ended(&[log.trim().parse().unwrap()]).await;
    }

    async fn until_ended(pids: &[i32]) {
        let have_ended = async || !pids.iter().any(|pid| is_running(*pid));
        eventually(TIME_LIMIT, "the processes do not end", have_ended).await;
    }

    /// A zombie does not count: in a container a killed grandchild may never be reaped.
    fn is_running(pid: i32) -> bool {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| !rest.starts_with('Z')))
    }

    #[tokio::test]
    async fn sockets_arrive_as_descriptors_three_and_up_with_their_names() {
        let (_folder, spec) = shell(
            "echo $LISTEN_FDS $LISTEN_FDNAMES ${LISTEN_PID-none} $ONE; readlink /proc/$$/fd/3 /proc/$$/fd/4",
        );
        let mut spec = spec.env("ONE", "first").env("ONE", "last");
        spec.clear_env = true;
        let mut inodes = String::new();
        for name in ["http", "grpc"] {
            let socket: OwnedFd = TcpListener::bind("127.0.0.1:0").unwrap().into();
            inodes += &format!("socket:[{}]\n", rustix::fs::fstat(&socket).unwrap().st_ino);
            spec.sockets.push((name.into(), Arc::new(socket)));
        }
        assert!(Process::spawn(&spec).unwrap().wait().await.unwrap().success());
        assert_eq!(std::fs::read_to_string(&spec.log).unwrap(), format!("2 http:grpc none last\n{inodes}"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_child_outlives_the_thread_that_asked_for_it() {
        let (_folder, spec) = shell("sleep 0.2; exit 4");
        let process = thread::spawn(move || Process::spawn(&spec).unwrap()).join().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(process.wait()).unwrap().code(), Some(4));
    }

    /// Starts itself again with the variable set; that second process is the launcher that is killed.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_child_dies_with_a_launcher_that_is_killed() {
        const ROLE: &str = "MESH_TEST_LAUNCHER_LOG";
        if let Some(log) = std::env::var_os(ROLE) {
            let spec = ProcessSpec::new("child", "/bin/sh", log).arg("-c").arg("echo $$; exec sleep 600");
            Process::spawn(&spec).unwrap().wait().await.unwrap();
            return;
        }
        let name = "process::tests::a_child_dies_with_a_launcher_that_is_killed";
        let (folder, mut launcher) = shell("");
        launcher.program = std::env::current_exe().unwrap();
        launcher.args = vec!["--exact".into(), name.into()];
        let child_log = folder.path().join("child.log");
        let launcher = Process::spawn(&launcher.env(ROLE, child_log.display().to_string())).unwrap();
        let child = ProcessSpec::new("child", "", &child_log);
        let pid = log_has(&child, "\n").await.trim().parse().unwrap();
        assert!(is_running(pid));
        launcher.signal(Signal::KILL).unwrap();
        until_ended(&[pid]).await;
    }
}
