//! `rocketmq health`: asks a role's health page, for images that have no curl.
//!
//! **Invariant:** exit code 0 only if the page answered 2xx within the time; every wait has an end.

use anyhow::Context as _;
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

const ONE_ANSWER: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(500);
/// Of an answer, only its first lines are of interest.
const ANSWER_BYTES_MAX: u64 = 4096;

/// `rocketmq health`
#[derive(Debug, clap::Args)]
pub(crate) struct HealthArgs {
    /// The page, as http://HOST:PORT/readyz
    url: String,
    /// Seconds in which it must answer well; it is asked again until then
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    within: u32,
}

pub(crate) fn run(args: &HealthArgs) -> anyhow::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(args.within.into());
    loop {
        match ask(&args.url) {
            Ok(()) => return Ok(()),
            Err(error) if Instant::now() + PAUSE >= deadline => return Err(error),
            Err(_) => std::thread::park_timeout(PAUSE),
        }
    }
}

fn ask(url: &str) -> anyhow::Result<()> {
    let rest = url.strip_prefix("http://");
    let rest = rest.with_context(|| format!("{url} does not begin with http://"))?;
    let (host, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    };
    let mut addresses = host
        .to_socket_addrs()
        .with_context(|| format!("cannot find {host}"))?;
    let address = addresses
        .next()
        .with_context(|| format!("{host} has no address"))?;
    let mut stream = TcpStream::connect_timeout(&address, ONE_ANSWER)
        .with_context(|| format!("cannot connect to {address}"))?;
    stream.set_read_timeout(Some(ONE_ANSWER))?;
    stream.set_write_timeout(Some(ONE_ANSWER))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream
        .take(ANSWER_BYTES_MAX)
        .read_to_end(&mut answer)
        .with_context(|| format!("{address} gave no whole answer"))?;
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.split_whitespace().nth(1).unwrap_or_default();
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    anyhow::ensure!(
        status.starts_with('2') && status.len() == 3,
        "{url} answers {status}: {}",
        body.trim()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A page that gives these answers, one a connection.
    fn page(answers: &'static [&'static str]) -> String {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}/readyz", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = Vec::new();
                let mut part = [0; 1024];
                // A request may come in pieces.
                while !request.ends_with(b"\r\n\r\n") {
                    let length = stream.read(&mut part).unwrap();
                    assert!(length > 0, "the request ended early");
                    request.extend_from_slice(&part[..length]);
                }
                assert!(request.starts_with(b"GET /readyz HTTP/1.1\r\n"));
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        url
    }

    #[test]
    fn a_page_that_is_not_well_is_an_error_with_its_words() {
        let url = page(&["HTTP/1.1 503 Service Unavailable\r\n\r\nstarting\n"]);
        let error = run(&HealthArgs { url, within: 0 }).unwrap_err().to_string();
        assert!(
            error.contains("503") && error.contains("starting"),
            "{error}"
        );
    }

    #[test]
    fn a_page_that_becomes_well_in_time_is_well() {
        let url = page(&["HTTP/1.1 503 No\r\n\r\n", "", "HTTP/1.1 200 OK\r\n\r\nok\n"]);
        run(&HealthArgs { url, within: 60 }).unwrap();
    }

    #[test]
    fn an_address_that_is_none_is_an_error() {
        for url in [
            "127.0.0.1:1/readyz",
            "http://127.0.0.1/readyz",
            "http:///readyz",
        ] {
            let url = url.to_owned();
            assert!(run(&HealthArgs { url, within: 0 }).is_err());
        }
    }
}
