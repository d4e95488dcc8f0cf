package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const count = 60

func TestSyncSend(t *testing.T) {
	topic := newTopic(t, 4)
	p := newProducer(t)
	sent := map[string]*primitive.SendResult{}
	for i := 0; i < count; i++ {
		m := message(topic, fmt.Sprintf("m%d", i)).WithTag("tag").WithKeys([]string{fmt.Sprintf("key%d", i)})
		m.WithProperty("number", fmt.Sprint(i))
		result := send(t, p, m)
		sent[result.MsgID] = result
	}
	if len(sent) != count {
		t.Fatalf("%d distinct ids for %d messages", len(sent), count)
	}
	box := &inbox{}
	startPush(t, unique(t, "group"), topic, "*", box.listen)
	for _, got := range box.await(t, count) {
		result := sent[got.MsgId]
		if result == nil {
			t.Fatalf("a message that was not sent: %v", got)
		}
		if got.QueueOffset != result.QueueOffset || got.Queue.QueueId != result.MessageQueue.QueueId {
			t.Errorf("sent to %v@%d, got from %v@%d", result.MessageQueue, result.QueueOffset, got.Queue, got.QueueOffset)
		}
		n := got.GetProperty("number")
		if string(got.Body) != "m"+n || got.GetKeys() != "key"+n || got.GetTags() != "tag" {
			t.Errorf("message %s came as %v", n, got)
		}
	}
	if len(box.distinct()) != count {
		t.Errorf("%d distinct bodies", len(box.distinct()))
	}
}

func TestAsyncSend(t *testing.T) {
	topic := newTopic(t, 4)
	p := newProducer(t)
	var answered sync.WaitGroup
	failures := make(chan error, count)
	for i := 0; i < count; i++ {
		answered.Add(1)
		err := p.SendAsync(context.Background(), func(_ context.Context, result *primitive.SendResult, err error) {
			defer answered.Done()
			if err != nil {
				failures <- err
			} else if result.Status != primitive.SendOK {
				failures <- fmt.Errorf("answer %v", result)
			}
		}, message(topic, fmt.Sprintf("m%d", i)))
		must(t, err)
	}
	answered.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
	box := &inbox{}
	startPush(t, unique(t, "group"), topic, "*", box.listen)
	box.await(t, count)
	if len(box.distinct()) != count {
		t.Errorf("%d distinct bodies", len(box.distinct()))
	}
}

func TestOneWaySend(t *testing.T) {
	topic := newTopic(t, 2)
	box := &inbox{}
	startPush(t, unique(t, "group"), topic, "*", box.listen)
	p := newProducer(t)
	for i := 0; i < count; i++ {
		must(t, p.SendOneWay(context.Background(), message(topic, fmt.Sprintf("m%d", i))))
		// Nobody hears of a one-way message that a busy broker refuses, so few are on their way at a time.
		box.await(t, i-4)
	}
	box.await(t, count)
	if len(box.distinct()) != count {
		t.Errorf("%d distinct bodies", len(box.distinct()))
	}
}

func TestBatchSend(t *testing.T) {
	topic := newTopic(t, 4)
	p := newProducer(t)
	var batch []*primitive.Message
	for i := 0; i < count; i++ {
		batch = append(batch, message(topic, fmt.Sprintf("m%d", i)).WithTag("tag").WithKeys([]string{fmt.Sprintf("key%d", i)}))
	}
	result, err := p.SendSync(context.Background(), batch...)
	must(t, err)
	if ids := strings.Split(result.OffsetMsgID, ","); result.Status != primitive.SendOK || len(ids) != count {
		t.Fatalf("status %v with %d ids", result.Status, len(ids))
	}
	box := &inbox{}
	startPush(t, unique(t, "group"), topic, "tag", box.listen)
	for _, got := range box.await(t, count) {
		var n int64
		if _, err := fmt.Sscanf(string(got.Body), "m%d", &n); err != nil {
			t.Fatal(err)
		}
		if got.QueueOffset != result.QueueOffset+n || got.Queue.QueueId != result.MessageQueue.QueueId {
			t.Errorf("message %d of the batch is at %d@%d", n, got.Queue.QueueId, got.QueueOffset)
		}
		if got.GetKeys() != fmt.Sprintf("key%d", n) {
			t.Errorf("message %d has keys %q", n, got.GetKeys())
		}
	}
}

func TestLargeCompressedBody(t *testing.T) {
	topic := newTopic(t, 1)
	p := newProducer(t, producer.WithCompressMsgBodyOverHowmuch(4096))
	body := strings.Repeat("compress me ", 100_000)
	send(t, p, message(topic, body))
	box := &inbox{}
	startPush(t, unique(t, "group"), topic, "*", box.listen)
	got := box.await(t, 1)[0]
	if string(got.Body) != body {
		t.Errorf("a body of %d bytes came back as %d", len(body), len(got.Body))
	}
	if got.StoreSize > 100_000 {
		t.Errorf("stored in %d bytes", got.StoreSize)
	}
}

func TestAutoCreatedTopic(t *testing.T) {
	topic := unique(t, "topic")
	p := newProducer(t)
	result := send(t, p, message(topic, "first"))
	if result.QueueOffset != 0 {
		t.Errorf("offset %d", result.QueueOffset)
	}
	box := &inbox{}
	startPush(t, unique(t, "group"), topic, "*", box.listen)
	box.await(t, 1)
}
