package e2e

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

func TestOrdered(t *testing.T) {
	topic := newTopic(t, 4)
	p := newProducer(t, producer.WithQueueSelector(producer.NewHashQueueSelector()))
	for i := 0; i < 4*count; i++ {
		m := message(topic, fmt.Sprintf("%d/%d", i%4, i/4))
		m.WithShardingKey(fmt.Sprintf("key-%d", i%4))
		send(t, p, m)
	}
	box := &inbox{}
	startPush(t, unique(t, "group"), topic, "*", box.listen, consumer.WithConsumerOrder(true))
	box.await(t, 4*count)
	next := map[int]int64{}
	for _, got := range box.all() {
		queue := got.Queue.QueueId
		if got.QueueOffset != next[queue] {
			t.Fatalf("queue %d: got offset %d, wanted %d", queue, got.QueueOffset, next[queue])
		}
		next[queue]++
	}
	last := map[string]int{}
	for _, body := range box.bodies() {
		var n int
		key, rest, _ := strings.Cut(body, "/")
		fmt.Sscan(rest, &n)
		if n != last[key] {
			t.Fatalf("key %s: got %d, wanted %d", key, n, last[key])
		}
		last[key]++
	}
}

func TestBroadcast(t *testing.T) {
	topic := newTopic(t, 4)
	group := unique(t, "group")
	first, second := &inbox{}, &inbox{}
	startPush(t, group, topic, "*", first.listen, consumer.WithConsumerModel(consumer.BroadCasting))
	startPush(t, group, topic, "*", second.listen, consumer.WithConsumerModel(consumer.BroadCasting))
	p := newProducer(t)
	for i := 0; i < count; i++ {
		send(t, p, message(topic, fmt.Sprintf("m%d", i)))
	}
	first.await(t, count)
	second.await(t, count)
	if len(first.distinct()) != count || len(second.distinct()) != count {
		t.Errorf("distinct bodies: %d and %d", len(first.distinct()), len(second.distinct()))
	}
}

func TestTags(t *testing.T) {
	topic := newTopic(t, 1)
	p := newProducer(t)
	tags := []string{"red", "green", "blue", "BB", "Aa", "last"}
	for i, tag := range tags {
		send(t, p, message(topic, fmt.Sprintf("%s %d", tag, i)).WithTag(tag))
	}
	box := &inbox{}
	startPush(t, unique(t, "group"), topic, "red || Aa || last", box.listen, consumer.WithConsumerOrder(true))
	box.await(t, 3)
	if want := []string{"red 0", "Aa 4", "last 5"}; !reflect.DeepEqual(box.bodies(), want) {
		t.Errorf("got %v, wanted %v", box.bodies(), want)
	}
}

func TestPushGoesOnWhereItStopped(t *testing.T) {
	topic := newTopic(t, 4)
	group := unique(t, "group")
	p := newProducer(t)
	for i := 0; i < count; i++ {
		send(t, p, message(topic, fmt.Sprintf("before %d", i)))
	}
	before := &inbox{}
	first := startPush(t, group, topic, "*", before.listen)
	before.await(t, count)
	await(t, "an empty backlog", func() bool { return first.GetOffsetDiffMap()[topic] == 0 })
	must(t, first.Shutdown())
	for i := 0; i < count; i++ {
		send(t, p, message(topic, fmt.Sprintf("after %d", i)))
	}
	after := &inbox{}
	startPush(t, group, topic, "*", after.listen)
	await(t, "every later message", func() bool {
		later := 0
		for body := range after.distinct() {
			if strings.HasPrefix(body, "after") {
				later++
			}
		}
		return later == count
	})
	// The client answers the last messages of a stop without committing them at times; all of them would be a loss of progress.
	if again := len(after.distinct()) - count; again >= count {
		t.Errorf("%d messages came again", again)
	}
}

func startPull(t *testing.T, group, topic, tags string) rocketmq.PullConsumer {
	t.Helper()
	created, err := rocketmq.NewPullConsumer(
		consumer.WithNsResolver(resolver(t)),
		consumer.WithGroupName(group),
		consumer.WithInstance(unique(t, "instance")),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	)
	must(t, err)
	must(t, created.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: tags}))
	must(t, created.Start())
	t.Cleanup(func() { _ = created.Shutdown() })
	return created
}

func TestPullPoll(t *testing.T) {
	topic := newTopic(t, 4)
	p := newProducer(t)
	for i := 0; i < count; i++ {
		send(t, p, message(topic, fmt.Sprintf("m%d", i)))
	}
	c := startPull(t, unique(t, "group"), topic, "*")
	box := &inbox{}
	await(t, "all polled", func() bool {
		polled, err := c.Poll(context.Background(), time.Second)
		if err == nil {
			box.add(polled.GetMsgList()...)
			c.ACK(context.Background(), polled, consumer.ConsumeSuccess)
		} else if !consumer.IsNoNewMsgError(err) {
			t.Log("poll:", err)
		}
		return len(box.distinct()) == count
	})
}

func TestPullFrom(t *testing.T) {
	topic := newTopic(t, 1)
	p := newProducer(t)
	var queue *primitive.MessageQueue
	for i := 0; i < 10; i++ {
		queue = send(t, p, message(topic, fmt.Sprintf("m%d", i))).MessageQueue
	}
	c := startPull(t, unique(t, "group"), topic, "*")
	result, err := c.PullFrom(context.Background(), queue, 3, 4)
	must(t, err)
	if result.Status != primitive.PullFound || len(result.GetMessageExts()) != 4 || string(result.GetMessageExts()[0].Body) != "m3" {
		t.Fatalf("pull from 3 gave %v", result)
	}
	if result.NextBeginOffset != 7 || result.MinOffset != 0 || result.MaxOffset != 10 {
		t.Errorf("next %d, min %d, max %d", result.NextBeginOffset, result.MinOffset, result.MaxOffset)
	}
	beyond, err := c.PullFrom(context.Background(), queue, 100, 4)
	must(t, err)
	if beyond.Status != primitive.PullOffsetIllegal || beyond.NextBeginOffset != 10 {
		t.Errorf("pull beyond the end gave %v", beyond)
	}
}

func TestRebalanceOfTwo(t *testing.T) {
	topic := newTopic(t, 8)
	group := unique(t, "group")
	first, second := &inbox{}, &inbox{}
	startPush(t, group, topic, "*", first.listen)
	later := startPush(t, group, topic, "*", second.listen)
	p := newProducer(t, producer.WithQueueSelector(producer.NewRoundRobinQueueSelector()))
	queues := func(box *inbox, round string) map[int]bool {
		of := map[int]bool{}
		for _, m := range box.all() {
			if strings.HasPrefix(string(m.Body), round) {
				of[m.Queue.QueueId] = true
			}
		}
		return of
	}
	round := 0
	await(t, "four queues for each", func() bool {
		round++
		prefix := fmt.Sprintf("r%d/", round)
		for i := 0; i < 8; i++ {
			send(t, p, message(topic, fmt.Sprintf("%s%d", prefix, i)))
		}
		await(t, "the round", func() bool { return len(queues(first, prefix))+len(queues(second, prefix)) >= 8 })
		return len(queues(first, prefix)) == 4 && len(queues(second, prefix)) == 4
	})
	must(t, later.Shutdown())
	for i := 0; i < 8; i++ {
		send(t, p, message(topic, fmt.Sprintf("alone/%d", i)))
	}
	await(t, "all queues for the one that stays", func() bool { return len(queues(first, "alone/")) == 8 })
}

func TestRetryToDeadLetter(t *testing.T) {
	topic := newTopic(t, 1)
	group := unique(t, "group")
	box := &inbox{}
	startPush(t, group, topic, "*", func(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		if concurrently, ok := primitive.GetConcurrentlyCtx(ctx); ok {
			concurrently.DelayLevelWhenNextConsume = 1
		}
		box.add(messages...)
		return consumer.ConsumeRetryLater, nil
	}, consumer.WithMaxReconsumeTimes(2))
	p := newProducer(t)
	sent := send(t, p, message(topic, "hopeless").WithTag("tag").WithKeys([]string{"key"}))
	for i, got := range box.await(t, 3)[:3] {
		if got.ReconsumeTimes != int32(i) || string(got.Body) != "hopeless" {
			t.Errorf("attempt %d: %v", i, got)
		}
	}
	dead := &inbox{}
	awaitDeadRoute(t, group)
	startPush(t, unique(t, "reader"), "%DLQ%"+group, "*", dead.listen)
	got := dead.await(t, 1)[0]
	if string(got.Body) != "hopeless" || got.GetKeys() != "key" || got.GetTags() != "tag" {
		t.Errorf("dead letter %v", got)
	}
	if got.GetProperty(primitive.PropertyRetryTopic) != topic || got.GetProperty(primitive.PropertyOriginMessageId) != sent.OffsetMsgID {
		t.Errorf("dead letter of topic %q, message %q", got.GetProperty(primitive.PropertyRetryTopic), got.GetProperty(primitive.PropertyOriginMessageId))
	}
}

func TestRequestReply(t *testing.T) {
	topic := newTopic(t, 2)
	answering := newProducer(t)
	// A reply goes to a producer that the broker knows by its heartbeat. The client sends the first one late, unless
	// a consumer starts in the same instance.
	instance := unique(t, "asking")
	asking := newProducer(t, producer.WithInstanceName(instance))
	var once sync.Map
	startPush(t, unique(t, "group"), topic, "*", func(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, question := range messages {
			if _, seen := once.LoadOrStore(question.MsgId, true); seen {
				continue
			}
			answer := []byte("answer to " + string(question.Body))
			reply, err := consumer.CreateReplyMessage(question, answer)
			if err == nil {
				// The client takes the answer for properties and leaves the body empty.
				reply.Body = answer
				_, err = answering.SendSync(ctx, reply)
			}
			if err != nil {
				t.Log("reply:", err)
				return consumer.ConsumeRetryLater, nil
			}
		}
		return consumer.ConsumeSuccess, nil
	}, consumer.WithInstance(instance))
	for i := 0; i < 5; i++ {
		reply, err := asking.Request(context.Background(), 30*time.Second, message(topic, fmt.Sprintf("question %d", i)))
		must(t, err)
		if want := fmt.Sprintf("answer to question %d", i); string(reply.Body) != want {
			t.Errorf("reply %q, wanted %q", reply.Body, want)
		}
	}
}

func TestRequestWithoutReplyTimesOut(t *testing.T) {
	topic := newTopic(t, 1)
	p := newProducer(t)
	if reply, err := p.Request(context.Background(), time.Second, message(topic, "anybody?")); err == nil {
		t.Fatalf("a reply out of nothing: %v", reply)
	}
}

// awaitDeadRoute waits until the dead letters of the group have a route.
func awaitDeadRoute(t *testing.T, group string) {
	t.Helper()
	tools := newAdmin(t)
	await(t, "dead letters", func() bool {
		queues, err := tools.FetchPublishMessageQueues(context.Background(), "%DLQ%"+group)
		return err == nil && len(queues) > 0
	})
}
