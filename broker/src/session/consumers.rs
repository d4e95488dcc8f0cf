//! Consumer groups with live members and their subscriptions (`ConsumerManager`).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rmq_protocol::{
    body::{ConsumeFromWhere, ConsumeType, MessageModel, SubscriptionData},
    remoting::Language,
};
use rmq_types::Timestamp;

/// One client in a group. `C` is whatever reaches it.
#[derive(Clone, Debug)]
pub(crate) struct Member<C> {
    /// Its client id.
    pub client_id: String,
    /// What it is written in.
    pub language: Language,
    /// Its version's ordinal.
    pub version: i32,
    /// How to reach it.
    pub channel: C,
    /// Last heartbeat.
    pub seen: Timestamp,
}

#[derive(Debug)]
struct Subscription {
    data: SubscriptionData,
    seen: Timestamp,
}

/// A group as its latest heartbeat describes it.
#[derive(Debug)]
struct Group<C> {
    consume_type: ConsumeType,
    model: MessageModel,
    from_where: ConsumeFromWhere,
    members: BTreeMap<u64, Member<C>>,
    subscriptions: HashMap<String, Subscription>,
}

/// What one heartbeat says of one group.
#[derive(Debug)]
pub(crate) struct Heartbeat<'a, C> {
    /// Connection number.
    pub connection: u64,
    /// The client.
    pub member: Member<C>,
    /// Who moves messages.
    pub consume_type: ConsumeType,
    /// How members share.
    pub model: MessageModel,
    /// Where to begin.
    pub from_where: ConsumeFromWhere,
    /// Its subscriptions; `None`: unchanged since the last full heartbeat.
    pub subscriptions: Option<&'a [SubscriptionData]>,
}

/// What a look-up of a subscription gave.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// This one.
    Yes(SubscriptionData),
    /// The group is online without it.
    NoSubscription,
    /// The group is not online.
    NoGroup,
}

impl Found {
    /// The subscription, whatever the reason why there is none.
    #[must_use]
    pub(crate) fn into_option(self) -> Option<SubscriptionData> {
        match self {
            Self::Yes(subscription) => Some(subscription),
            Self::NoSubscription | Self::NoGroup => None,
        }
    }
}

/// What a heartbeat or a leave changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GroupChange {
    /// Members came or went.
    pub members: bool,
    /// A subscription is new, newer or gone.
    pub subscriptions: bool,
}

impl GroupChange {
    /// Whether members must hear of it.
    #[must_use]
    pub(crate) fn any(self) -> bool {
        self.members || self.subscriptions
    }
}

/// A snapshot of a group.
#[derive(Clone, Debug)]
pub(crate) struct GroupView<C> {
    /// Who moves messages.
    pub consume_type: ConsumeType,
    /// How members share.
    pub model: MessageModel,
    /// Where to begin.
    pub from_where: ConsumeFromWhere,
    /// The members.
    pub members: Vec<Member<C>>,
    /// By topic.
    pub subscriptions: BTreeMap<String, SubscriptionData>,
}

/// What a group that is online consumes.
#[derive(Clone, Debug)]
pub(crate) struct Subscribed {
    /// How members share.
    pub model: MessageModel,
    /// Topics, those of retries too.
    pub topics: BTreeSet<String>,
}

/// Members that are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MemberKind {
    /// Their group.
    pub group: String,
    /// What they are written in.
    pub language: &'static str,
    /// Their version's ordinal.
    pub version: i32,
    /// Who moves messages.
    pub consume_type: ConsumeType,
}

/// All groups.
#[derive(Debug)]
pub(crate) struct Consumers<C> {
    groups: HashMap<String, Group<C>>,
}

impl<C> Default for Consumers<C> {
    fn default() -> Self {
        Self {
            groups: HashMap::new(),
        }
    }
}

impl<C: Clone> Consumers<C> {
    /// Takes a heartbeat of one group.
    pub(crate) fn heartbeat(&mut self, group: &str, beat: Heartbeat<'_, C>) -> GroupChange {
        let entry = self
            .groups
            .entry(group.to_owned())
            .or_insert_with(|| Group {
                consume_type: beat.consume_type,
                model: beat.model,
                from_where: beat.from_where,
                members: BTreeMap::new(),
                subscriptions: HashMap::new(),
            });
        entry.consume_type = beat.consume_type;
        entry.model = beat.model;
        entry.from_where = beat.from_where;
        let now = beat.member.seen;
        let old = entry.members.insert(beat.connection, beat.member);
        let client = entry
            .members
            .get(&beat.connection)
            .map(|member| member.client_id.as_str());
        let members = old.is_none_or(|old| Some(old.client_id.as_str()) != client);
        let subscriptions = beat
            .subscriptions
            .is_some_and(|list| subscribe(&mut entry.subscriptions, list, now));
        GroupChange {
            members,
            subscriptions,
        }
    }

    /// Takes a connection out of every group; gives the groups it was in.
    pub(crate) fn leave_all(&mut self, connection: u64) -> Vec<String> {
        let mut left = Vec::new();
        self.groups.retain(|name, group| {
            if group.members.remove(&connection).is_some() {
                left.push(name.clone());
            }
            !group.members.is_empty()
        });
        left
    }

    /// Takes a connection out of one group; whether it was in.
    pub(crate) fn leave(&mut self, group: &str, connection: u64) -> bool {
        let Some(entry) = self.groups.get_mut(group) else {
            return false;
        };
        let was_in = entry.members.remove(&connection).is_some();
        if entry.members.is_empty() {
            self.groups.remove(group);
        }
        was_in
    }

    /// Drops members silent for `member_millis` and subscriptions older than `subscription_millis`;
    /// gives the groups that lost members.
    pub(crate) fn expire(
        &mut self,
        now: Timestamp,
        member_millis: i64,
        subscription_millis: i64,
    ) -> Vec<String> {
        let mut changed = Vec::new();
        self.groups.retain(|name, group| {
            let before = group.members.len();
            group
                .members
                .retain(|_, member| now.since(member.seen) <= member_millis);
            group
                .subscriptions
                .retain(|_, sub| now.since(sub.seen) <= subscription_millis);
            if group.members.len() < before {
                changed.push(name.clone());
            }
            !group.members.is_empty()
        });
        changed
    }

    /// The subscription of a group to a topic.
    #[must_use]
    pub(crate) fn subscription(&self, group: &str, topic: &str) -> Found {
        let Some(group) = self.groups.get(group) else {
            return Found::NoGroup;
        };
        match group.subscriptions.get(topic) {
            Some(subscription) => Found::Yes(subscription.data.clone()),
            None => Found::NoSubscription,
        }
    }

    /// How the members of a group share.
    #[must_use]
    pub(crate) fn model(&self, group: &str) -> Option<MessageModel> {
        self.groups.get(group).map(|group| group.model)
    }

    /// Client ids of a group's members, each once, sorted.
    #[must_use]
    pub(crate) fn client_ids(&self, group: &str) -> Vec<String> {
        let mut ids: Vec<String> = self
            .groups
            .get(group)
            .into_iter()
            .flat_map(|group| group.members.values())
            .map(|member| member.client_id.clone())
            .collect();
        ids.sort();
        ids.dedup();
        ids
    }

    /// How to reach each member of a group.
    #[must_use]
    pub(crate) fn channels(&self, group: &str) -> Vec<C> {
        let members = self
            .groups
            .get(group)
            .into_iter()
            .flat_map(|group| group.members.values());
        members.map(|member| member.channel.clone()).collect()
    }

    /// The member with a client id.
    #[must_use]
    pub(crate) fn member(&self, group: &str, client_id: &str) -> Option<Member<C>> {
        self.groups
            .get(group)?
            .members
            .values()
            .find(|m| m.client_id == client_id)
            .cloned()
    }

    /// A snapshot of one group.
    #[must_use]
    pub(crate) fn view(&self, group: &str) -> Option<GroupView<C>> {
        let group = self.groups.get(group)?;
        Some(GroupView {
            consume_type: group.consume_type,
            model: group.model,
            from_where: group.from_where,
            members: group.members.values().cloned().collect(),
            subscriptions: group
                .subscriptions
                .iter()
                .map(|(topic, sub)| (topic.clone(), sub.data.clone()))
                .collect(),
        })
    }

    /// Groups that subscribe to a topic.
    #[must_use]
    pub(crate) fn groups_of(&self, topic: &str) -> Vec<String> {
        self.groups
            .iter()
            .filter(|(_, group)| group.subscriptions.contains_key(topic))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Every group that is online, with what it consumes.
    pub(crate) fn subscribed(&self) -> impl Iterator<Item = (String, Subscribed)> {
        self.groups.iter().map(|(name, group)| {
            let topics = group.subscriptions.keys().cloned().collect();
            let model = group.model;
            (name.clone(), Subscribed { model, topics })
        })
    }

    /// How many members of each kind there are.
    #[must_use]
    pub(crate) fn kinds(&self) -> BTreeMap<MemberKind, usize> {
        let mut kinds = BTreeMap::new();
        for (name, group) in &self.groups {
            for member in group.members.values() {
                let kind = MemberKind {
                    group: name.clone(),
                    language: member.language.name(),
                    version: member.version,
                    consume_type: group.consume_type,
                };
                *kinds.entry(kind).or_default() += 1;
            }
        }
        kinds
    }
}

/// Newer subscriptions replace older ones; topics that a full heartbeat leaves out are dropped.
fn subscribe(
    table: &mut HashMap<String, Subscription>,
    list: &[SubscriptionData],
    now: Timestamp,
) -> bool {
    let mut changed = false;
    for data in list {
        if let Some(old) = table.get_mut(&data.topic) {
            if data.sub_version > old.data.sub_version {
                changed |= data.sub_string != old.data.sub_string;
                old.data = data.clone();
            }
            old.seen = now;
        } else {
            changed = true;
            table.insert(
                data.topic.clone(),
                Subscription {
                    data: data.clone(),
                    seen: now,
                },
            );
        }
    }
    let before = table.len();
    let kept: HashSet<&str> = list.iter().map(|data| data.topic.as_str()).collect();
    table.retain(|topic, _| kept.contains(topic.as_str()));
    changed || table.len() < before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn sub(topic: &str, version: i64) -> SubscriptionData {
        SubscriptionData {
            topic: topic.to_owned(),
            sub_version: version,
            sub_string: "*".to_owned(),
            ..SubscriptionData::default()
        }
    }

    fn beat(
        connection: u64,
        millis: i64,
        subscriptions: Option<&[SubscriptionData]>,
    ) -> Heartbeat<'_, u64> {
        Heartbeat {
            connection,
            member: Member {
                client_id: format!("c{connection}"),
                language: Language::Java,
                version: 479,
                channel: connection,
                seen: at(millis),
            },
            consume_type: ConsumeType::default(),
            model: MessageModel::default(),
            from_where: ConsumeFromWhere::default(),
            subscriptions,
        }
    }

    #[test]
    fn a_new_member_and_a_new_subscription_are_changes_and_a_repeat_is_none() {
        let mut table = Consumers::default();
        let subs = [sub("t", 1)];
        let change = table.heartbeat("g", beat(1, 0, Some(&subs)));
        assert_eq!(
            change,
            GroupChange {
                members: true,
                subscriptions: true
            }
        );
        assert!(!table.heartbeat("g", beat(1, 1, Some(&subs))).any());
        assert!(table.heartbeat("g", beat(2, 1, Some(&subs))).members);
        assert_eq!(table.client_ids("g"), ["c1", "c2"]);
    }

    #[test]
    fn a_heartbeat_without_subscriptions_keeps_those_known() {
        let mut table = Consumers::default();
        table.heartbeat("g", beat(1, 0, Some(&[sub("t", 1)])));
        table.heartbeat("g", beat(1, 1, None));
        assert!(matches!(table.subscription("g", "t"), Found::Yes(_)));
    }

    #[test]
    fn a_client_that_beats_only_for_one_group_expires_from_the_other() {
        let mut table = Consumers::default();
        table.heartbeat("a", beat(1, 0, None));
        table.heartbeat("b", beat(1, 0, None));
        table.heartbeat("a", beat(1, 120_000, None));
        assert_eq!(table.expire(at(120_001), 120_000, 600_000), ["b"]);
        assert!(table.view("a").is_some() && table.view("b").is_none());
    }

    #[test]
    fn an_older_subscription_does_not_replace_a_newer_one() {
        let mut table = Consumers::default();
        table.heartbeat("g", beat(1, 0, Some(&[sub("t", 5)])));
        table.heartbeat("g", beat(1, 0, Some(&[sub("t", 4)])));
        let found = table.subscription("g", "t");
        assert!(matches!(found, Found::Yes(subscription) if subscription.sub_version == 5));
    }

    #[test]
    fn a_closed_connection_leaves_every_group() {
        let mut table = Consumers::default();
        table.heartbeat("a", beat(1, 0, None));
        table.heartbeat("b", beat(1, 0, None));
        let mut left = table.leave_all(1);
        left.sort();
        assert_eq!(left, ["a", "b"]);
        assert!(table.kinds().is_empty());
    }
}
