//! One of the two servers that are compared, and the workload as it is run there.
//!
//! Invariant: what a workload needs (topics, messages to pull) is made once, by [`Side::prepare`];
//! no measured run makes it again.

use std::net::SocketAddr;

use anyhow::Result;
use rmq_protocol::remoting::{Command, request_code};

use crate::control::{Control, resolve};
use crate::frames::topic_names;
use crate::load;
use crate::report::Report;
use crate::{CompareArgs, LatencyArgs, LoadArgs, PullArgs, RouteArgs, Workload};

/// See the module.
#[derive(Debug)]
pub(super) struct Side<'a> {
    pub(super) addr: SocketAddr,
    pub(super) load: LoadArgs,
    args: &'a CompareArgs,
    is_floor: bool,
}

impl<'a> Side<'a> {
    /// A server at an address.
    pub(super) fn new(args: &'a CompareArgs, addr: &str, pid: Option<u32>) -> Result<Self> {
        Ok(Self {
            addr: resolve(addr)?,
            load: LoadArgs {
                pid,
                ..args.load.clone()
            },
            args,
            is_floor: false,
        })
    }

    /// The floor broker.
    pub(super) fn floor(args: &'a CompareArgs, addr: SocketAddr, pid: u32) -> Self {
        Self {
            addr,
            load: LoadArgs {
                pid: Some(pid),
                ..args.load.clone()
            },
            args,
            is_floor: true,
        }
    }

    /// What to call it.
    pub(super) fn name(&self) -> String {
        if self.is_floor {
            "floor broker".to_owned()
        } else {
            self.addr.to_string()
        }
    }

    /// Makes topics and messages.
    pub(super) fn prepare(&self) -> Result<()> {
        let message = &self.args.message;
        match self.args.workload {
            Workload::Send if !message.no_create => {
                let topics = topic_names(&message.topic, message.topics);
                Control::connect(self.addr)?.create_topics(&topics, message.queues, |_| {})
            }
            Workload::Pull if self.is_floor => {
                // Its records are made by the first pull, which may take longer than a warm-up.
                let pull = Command::request(request_code::PULL_MESSAGE)
                    .with_ext("queueOffset", "0")
                    .with_ext("maxMsgNums", "1")
                    .with_ext("sysFlag", "0");
                Control::connect(self.addr)?.call(pull).map(drop)
            }
            Workload::Pull => load::pull::prepare(&self.pull()).map(drop),
            // A route is registered for the time of each run, a latency run makes its topic itself.
            Workload::Send | Workload::Route | Workload::Latency => Ok(()),
        }
    }

    /// Runs the workload once.
    pub(super) fn measure(&self) -> Result<Report> {
        let (args, message) = (self.args, &self.args.message);
        match args.workload {
            Workload::Send => load::send::measure(self.addr, &self.load, message),
            Workload::Pull => load::pull::measure(&self.pull()),
            Workload::Route => load::route::run(&RouteArgs {
                addr: self.addr.to_string(),
                load: self.load.clone(),
                topic: message.topic.clone(),
                topics: message.topics,
                queues: message.queues,
                register: !message.no_create,
            }),
            Workload::Latency => load::latency::run(&LatencyArgs {
                addr: self.addr.to_string(),
                size: message.size,
                // Not the topic itself: it would be left with one queue.
                topic: format!("{}-latency", message.topic),
                count: args.count,
                gap: args.gap,
                group: args.pull.group.clone(),
                pid: self.load.pid,
            }),
        }
    }

    fn pull(&self) -> PullArgs {
        PullArgs {
            addr: self.addr.to_string(),
            load: self.load.clone(),
            message: self.args.message.clone(),
            pull: self.args.pull.clone(),
        }
    }
}
