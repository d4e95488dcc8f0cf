//! Probes as a kubelet makes them: HTTP GET with a deadline; 2xx is success.
//!
//! **Invariant:** a probe ends within its deadline and reads a bounded answer. A role that cannot
//! be reached is not ready, whatever the reason.

use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const DEADLINE: Duration = Duration::from_secs(3);
const ANSWER_BYTES_MAX: u64 = 16 * 1024;

/// Asks `path` of the health page at `addr`; the error is what a person should read.
pub(crate) async fn get(addr: SocketAddr, path: &str) -> Result<(), String> {
    match tokio::time::timeout(DEADLINE, exchange(addr, path)).await {
        Ok(Ok(answer)) => judge(&answer),
        Ok(Err(error)) => Err(format!("{path}: {error}")),
        Err(_) => Err(format!("{path}: no answer within {} s", DEADLINE.as_secs())),
    }
}

async fn exchange(addr: SocketAddr, path: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(addr).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream
        .take(ANSWER_BYTES_MAX)
        .read_to_end(&mut answer)
        .await?;
    Ok(answer)
}

fn judge(answer: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let code = head
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse::<u16>().ok());
    match code {
        Some(200..=299) => Ok(()),
        Some(_) if !body.trim().is_empty() => Err(body.trim().chars().take(300).collect()),
        Some(code) => Err(format!("HTTP {code}")),
        None => Err("no HTTP answer".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_judged_by_its_code_and_the_body_is_the_reason() {
        assert_eq!(judge(b"HTTP/1.1 200 OK\r\n\r\nok"), Ok(()));
        let busy = b"HTTP/1.1 503 Service Unavailable\r\nA: b\r\n\r\nnot registered\n";
        assert_eq!(judge(busy), Err("not registered".to_owned()));
        assert_eq!(
            judge(b"HTTP/1.1 404 Not Found\r\n\r\n"),
            Err("HTTP 404".to_owned())
        );
        assert_eq!(judge(b"\xff\xff"), Err("no HTTP answer".to_owned()));
    }

    #[tokio::test]
    async fn nobody_there_is_not_ready() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        drop(listener);
        assert!(
            get(addr, "/readyz")
                .await
                .unwrap_err()
                .starts_with("/readyz: ")
        );
    }
}
