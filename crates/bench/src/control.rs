//! A blocking connection for what happens around a measurement: topics, groups, offsets.
//!
//! Invariant: requests are answered in any order but every one is answered, or there is an error.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::{Buf, BytesMut};
use rmq_protocol::remoting::{Command, Serializer, Split, request_code, split_frame};

const TIMEOUT: Duration = Duration::from_secs(30);
const FRAME_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Requests sent ahead of their answers.
const AHEAD: usize = 64;

/// See the module.
#[derive(Debug)]
pub(crate) struct Control {
    stream: TcpStream,
    unread: BytesMut,
}

/// The first address a text resolves to.
pub(crate) fn resolve(addr: &str) -> Result<SocketAddr> {
    let mut found = addr
        .to_socket_addrs()
        .with_context(|| format!("{addr} is no address"))?;
    found
        .next()
        .with_context(|| format!("{addr} has no address"))
}

impl Control {
    pub(crate) fn connect(addr: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&addr, Duration::from_secs(3))
            .with_context(|| format!("cannot connect to {addr}: is a server running there?"))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            unread: BytesMut::new(),
        })
    }

    fn receive(&mut self) -> Result<Command> {
        let mut chunk = vec![0; 64 * 1024];
        loop {
            if let Split::Frame { frame, consumed } = split_frame(&self.unread, FRAME_BYTES_MAX)? {
                let cmd = Command::decode(frame)?;
                self.unread.advance(consumed);
                return Ok(cmd);
            }
            let count = self.stream.read(&mut chunk).context("no answer")?;
            ensure!(count > 0, "the server closed the connection");
            self.unread
                .extend_from_slice(chunk.get(..count).unwrap_or_default());
        }
    }

    /// One request and its answer; an answer other than success is an error.
    pub(crate) fn call(&mut self, cmd: Command) -> Result<Command> {
        let mut answers = self.call_all(vec![cmd], |_| {})?;
        answers.pop().context("no answer")
    }

    /// Many requests, their answers in the same order. `each` is told how many are answered.
    pub(crate) fn call_all(
        &mut self,
        commands: Vec<Command>,
        mut each: impl FnMut(usize),
    ) -> Result<Vec<Command>> {
        let mut places = HashMap::new();
        let mut answers: Vec<Option<Command>> = vec![None; commands.len()];
        let total = commands.len();
        let (mut commands, mut answered) = (commands.into_iter().enumerate(), 0);
        while answered < total {
            let mut out = BytesMut::new();
            for (place, cmd) in commands.by_ref().take(AHEAD - places.len()) {
                places.insert(cmd.opaque, (place, cmd.code));
                cmd.encode(Serializer::Json, &mut out);
            }
            self.stream.write_all(&out)?;
            let answer = self.receive()?;
            let Some((place, code)) = places.remove(&answer.opaque) else {
                continue;
            };
            if answer.code != 0 {
                let remark = answer.remark.as_deref().unwrap_or("no remark");
                bail!("request {code} was answered with {}: {remark}", answer.code);
            }
            if let Some(slot) = answers.get_mut(place) {
                *slot = Some(answer);
            }
            answered += 1;
            each(answered);
        }
        Ok(answers.into_iter().flatten().collect())
    }

    /// Creates topics, or changes their number of queues.
    pub(crate) fn create_topics(
        &mut self,
        names: &[String],
        queues: u32,
        each: impl FnMut(usize),
    ) -> Result<()> {
        let queues = queues.to_string();
        let commands = names.iter().map(|name| {
            Command::request(request_code::UPDATE_AND_CREATE_TOPIC)
                .with_ext("topic", name.clone())
                .with_ext("defaultTopic", "TBW102")
                .with_ext("readQueueNums", queues.clone())
                .with_ext("writeQueueNums", queues.clone())
                .with_ext("perm", "6")
                .with_ext("topicFilterType", "SINGLE_TAG")
                .with_ext("topicSysFlag", "0")
                .with_ext("order", "false")
        });
        self.call_all(commands.collect(), each)
            .context("cannot create topics")?;
        Ok(())
    }

    /// Creates a consumer group.
    pub(crate) fn create_group(&mut self, group: &str) -> Result<()> {
        let config = serde_json::json!({
            "groupName": group, "consumeEnable": true, "consumeFromMinEnable": true,
            "consumeBroadcastEnable": true, "retryQueueNums": 1, "retryMaxTimes": 16,
            "brokerId": 0, "whichBrokerWhenConsumeSlowly": 1, "notifyConsumerIdsChangedEnable": true,
        });
        let code = request_code::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP;
        let cmd = Command::request(code).with_body(config.to_string());
        self.call(cmd).context("cannot create the consumer group")?;
        Ok(())
    }

    /// End offsets of the queues 0 to `queues` of every topic.
    pub(crate) fn max_offsets(&mut self, topics: &[String], queues: u32) -> Result<Vec<i64>> {
        let commands = topics.iter().flat_map(|topic| {
            (0..queues).map(move |queue| {
                Command::request(request_code::GET_MAX_OFFSET)
                    .with_ext("topic", topic.clone())
                    .with_ext("queueId", queue.to_string())
                    .with_ext("committed", "true")
            })
        });
        let answers = self
            .call_all(commands.collect(), |_| {})
            .context("cannot read offsets")?;
        answers
            .iter()
            .map(|answer| {
                let offset = answer
                    .ext
                    .get("offset")
                    .context("an answer without offset")?;
                offset
                    .parse()
                    .with_context(|| format!("offset {offset} is no number"))
            })
            .collect()
    }
}
