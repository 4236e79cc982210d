//! Arguments of a service's program: `--help` lists its variables, `--ready` reads `/readyz` of the replica
//! on this machine, for health checks of containers, which can only run a program.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    path::Path,
    process::ExitCode,
    time::Duration,
};

/// Timeout of connecting and of each read; longer than a readiness check, which takes at most five seconds.
const TIMEOUT: Duration = Duration::from_secs(6);

/// Most bytes of the response that are read.
const MAX_RESPONSE_BYTES: u64 = 4096;

/// A known argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Argument {
    /// `--help`
    Help,
    /// `--ready`
    Ready,
}

/// Reads the arguments of this process.
///
/// # Errors
/// When there is an unknown argument, or more than one.
pub(crate) fn read(arguments: impl IntoIterator<Item = String>) -> Result<Option<Argument>, String> {
    let mut arguments = arguments.into_iter();
    let argument = match arguments.next().as_deref() {
        None => return Ok(None),
        Some("--help" | "-h") => Argument::Help,
        Some("--ready") => Argument::Ready,
        Some(other) => return Err(format!("{other} is not known; --help and --ready are")),
    };
    match arguments.next() {
        None => Ok(Some(argument)),
        Some(more) => Err(format!("{more} is one argument too many")),
    }
}

/// Prints the variables that a service reads, one per line.
pub(crate) fn help(workload: &str, description: &str, variables: &[String]) -> ExitCode {
    let text = format!(
        "{workload}: a service of the mesh. {description}.\n\
         --ready asks the one that runs here whether it is ready.\n\
         Its README says what these variables mean; with OTEL_EXPORTER_OTLP_ENDPOINT the standard OTEL_ ones count, too.\n\n\
         {}\n",
        variables.join("\n")
    );
    // Fails when the reader has closed the pipe.
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

/// Reads `/readyz` of the admin port and prints why the service is not ready.
pub(crate) fn ready(admin: SocketAddr, address_file: Option<&Path>) -> ExitCode {
    match ask(admin, address_file) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn ask(admin: SocketAddr, address_file: Option<&Path>) -> Result<(), String> {
    let address_text = address_file.and_then(|file| fs::read_to_string(file).ok());
    let mut address = address_text.and_then(|text| text.trim().parse().ok()).unwrap_or(admin);
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    let exchange = || {
        let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let request = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.take(MAX_RESPONSE_BYTES).read_to_string(&mut answer)?;
        Ok::<_, io::Error>(answer)
    };
    let answer = exchange().map_err(|error| format!("{address} does not answer: {error}"))?;
    match answer.starts_with("HTTP/1.1 200 ") {
        true => Ok(()),
        false => Err(answer.rsplit("\r\n\r\n").next().unwrap_or_default().trim().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    fn read_of(arguments: &[&str]) -> Result<Option<Argument>, String> {
        read(arguments.iter().map(|argument| (*argument).to_owned()))
    }

    #[test]
    fn only_known_arguments_are_taken() {
        assert_eq!(read_of(&[]), Ok(None));
        assert_eq!(read_of(&["--help"]), Ok(Some(Argument::Help)));
        assert_eq!(read_of(&["--ready"]), Ok(Some(Argument::Ready)));
        assert!(read_of(&["--port"]).is_err() && read_of(&["--ready", "now"]).is_err());
    }

    #[test]
    fn readiness_is_what_the_admin_port_says() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let answers =
            ["200 OK\r\n\r\nready\n", "503 Service Unavailable\r\n\r\nnot ready: no connection to the bus\n"];
        let answering = thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut asked = Vec::new();
                while !asked.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    asked.extend(byte);
                }
                assert!(asked.starts_with(b"GET /readyz HTTP/1.1\r\n"));
                stream.write_all(format!("HTTP/1.1 {answer}").as_bytes()).unwrap();
            }
        });
        let admin = SocketAddr::from(([0, 0, 0, 0], port));
        assert_eq!(ask(admin, None), Ok(()));
        assert_eq!(ask(admin, None), Err("not ready: no connection to the bus".to_owned()));
        answering.join().unwrap();
        assert!(ask(admin, None).unwrap_err().contains("does not answer"));
    }
}
