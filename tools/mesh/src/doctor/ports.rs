//! Checks the ports of the edge: those that the mesh of the home serves, or that its next start would open.

use std::{
    collections::BTreeSet,
    fs, io,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    time::Duration,
};

use mesh_launcher::home::Ports;

use super::{
    Running,
    finding::{Checked, Fault},
};
use crate::cli::{DoctorArgs, GRPC_PORT, HTTP_PORT};

/// Timeout of a connection to a port of this machine.
const WITHIN: Duration = Duration::from_secs(2);

/// Checks both ports. `last` are those of the home's last start, which are in use while its mesh runs.
pub(super) fn check(args: &DoctorArgs, last: Option<Ports>, running: &Running) -> [Checked; 2] {
    let host = args.host.or(last.map(|last| last.host)).unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let runs = (running.is_there() || running.silent.is_some()) && args.host.is_none();
    let one = |given: Option<u16>, opened: Option<SocketAddr>, requested: u16| match (given, opened) {
        (None, Some(opened)) if runs => served(opened),
        (None, None) if running.is_foreign => Ok("unknown: the home belongs to another user".to_owned()),
        (None, None) if runs => Ok("unknown: the mesh that runs is of an older release".to_owned()),
        (given, _) => free(host, given.unwrap_or(requested), running),
    };
    [
        one(args.port, last.map(|last| last.http), last.map_or(HTTP_PORT, |last| last.port)),
        one(args.grpc_port, last.map(|last| last.grpc), last.map_or(GRPC_PORT, |last| last.grpc_port)),
    ]
}

fn served(address: SocketAddr) -> Checked {
    match TcpStream::connect_timeout(&address, WITHIN) {
        Ok(_) => Ok(format!("{address} is served by the mesh that runs")),
        Err(error) => Err(Fault::wrong(
            format!("{address} of the mesh that runs takes no connection ({error})"),
            "end the `mesh up` of this home and start it again",
        )),
    }
}

fn free(host: IpAddr, port: u16, running: &Running) -> Checked {
    let error = match TcpListener::bind((host, port)) {
        Ok(_) if port == 0 => return Ok(format!("any free one of {host}")),
        Ok(_) => return Ok(format!("{host}:{port} is free")),
        Err(error) => error,
    };
    if error.kind() != io::ErrorKind::AddrInUse {
        let says = format!("{host}:{port} cannot be opened ({error})");
        return Err(Fault::wrong(says, "give another port or another --host"));
    }
    let holders = holders(port);
    if running.rows.iter().any(|row| holders.contains(&row.pid)) {
        return Ok(format!("{host}:{port} is served by the mesh that runs"));
    }
    let names: Vec<String> = holders.iter().map(|pid| format!("process {pid}{}", name_of(*pid))).collect();
    let names = if names.is_empty() { "a process of another user".to_owned() } else { names.join(", ") };
    Err(Fault::wrong(
        format!("{host}:{port} is taken by {names}"),
        "start this mesh on another port with --port and --grpc-port (0 takes a free one)",
    ))
}

/// The ids of processes that listen on a port, as far as this user may see them; empty without `/proc`.
fn holders(port: u16) -> BTreeSet<u32> {
    let sockets: BTreeSet<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| table.lines().filter_map(|line| listening(line, port)).collect::<Vec<_>>())
        .collect();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut leads_to = files.filter_map(|file| fs::read_link(file.path()).ok());
        leads_to.any(|target| sockets.contains(target.to_string_lossy().as_ref()))
    })
    .collect()
}

/// The link text (`socket:[INODE]`) of a line of `/proc/net/tcp`, when that socket listens on the port.
fn listening(line: &str, port: u16) -> Option<String> {
    const LISTENS: &str = "0A";
    let mut fields = line.split_whitespace();
    let (_, found) = fields.nth(1)?.rsplit_once(':')?;
    let state = fields.nth(1)?;
    let inode = fields.nth(5)?;
    (state == LISTENS && u16::from_str_radix(found, 16) == Ok(port)).then(|| format!("socket:[{inode}]"))
}

fn name_of(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    if name.is_empty() { name } else { format!(" ({})", name.trim()) }
}
