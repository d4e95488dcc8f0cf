// Package e2e runs the official Go client against a running cluster: NAMESRV_ADDR and BROKER_ADDR say where.
package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

// Long enough for a busy computer: nothing waits for it unless something is broken.
const limit = 90 * time.Second

var (
	run    = time.Now().UnixNano() % 1_000_000_000
	number int64
)

func TestMain(m *testing.M) {
	rlog.SetLogLevel(logLevel())
	os.Exit(m.Run())
}

func environment(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("set %s: it comes from the output of the cluster that the tests run against", name)
	}
	return value
}

func resolver(t *testing.T) primitive.NsResolver {
	return primitive.NewPassthroughResolver([]string{environment(t, "NAMESRV_ADDR")})
}

// unique gives a name that no other test and no other run uses.
func unique(t *testing.T, what string) string {
	return fmt.Sprintf("e2e-go-%s-%s-%d-%d", t.Name(), what, run, atomic.AddInt64(&number, 1))
}

func newTopic(t *testing.T, queues int) string {
	t.Helper()
	topic := unique(t, "topic")
	setTopic(t, topic, queues)
	return topic
}

func setTopic(t *testing.T, topic string, queues int) {
	t.Helper()
	tools := newAdmin(t)
	must(t, tools.CreateTopic(context.Background(), admin.WithTopicCreate(topic),
		admin.WithBrokerAddrCreate(environment(t, "BROKER_ADDR")),
		admin.WithReadQueueNums(queues), admin.WithWriteQueueNums(queues)))
	await(t, "the route of "+topic, func() bool {
		found, err := tools.FetchPublishMessageQueues(context.Background(), topic)
		return err == nil && len(found) == queues
	})
}

func newAdmin(t *testing.T) admin.Admin {
	t.Helper()
	tools, err := admin.NewAdmin(admin.WithResolver(resolver(t)))
	must(t, err)
	t.Cleanup(func() { _ = tools.Close() })
	return tools
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", limit, what)
		}
		<-tick.C
	}
}

func newProducer(t *testing.T, options ...producer.Option) rocketmq.Producer {
	t.Helper()
	options = append([]producer.Option{
		producer.WithNsResolver(resolver(t)),
		producer.WithGroupName(unique(t, "producer")),
		producer.WithInstanceName(unique(t, "instance")),
		producer.WithSendMsgTimeout(10 * time.Second),
		producer.WithRetry(2),
	}, options...)
	created, err := rocketmq.NewProducer(options...)
	must(t, err)
	must(t, created.Start())
	t.Cleanup(func() { _ = created.Shutdown() })
	return created
}

func send(t *testing.T, p rocketmq.Producer, message *primitive.Message) *primitive.SendResult {
	t.Helper()
	result, err := p.SendSync(context.Background(), message)
	must(t, err)
	if result.Status != primitive.SendOK {
		t.Fatalf("send answered %v", result)
	}
	return result
}

func message(topic, body string) *primitive.Message {
	return primitive.NewMessage(topic, []byte(body))
}

// inbox keeps what a consumer got, in order.
type inbox struct {
	mutex    sync.Mutex
	messages []*primitive.MessageExt
}

func (box *inbox) add(messages ...*primitive.MessageExt) int {
	box.mutex.Lock()
	defer box.mutex.Unlock()
	box.messages = append(box.messages, messages...)
	return len(box.messages)
}

func (box *inbox) all() []*primitive.MessageExt {
	box.mutex.Lock()
	defer box.mutex.Unlock()
	return append([]*primitive.MessageExt(nil), box.messages...)
}

func (box *inbox) bodies() []string {
	var bodies []string
	for _, m := range box.all() {
		bodies = append(bodies, string(m.Body))
	}
	return bodies
}

func (box *inbox) distinct() map[string]bool {
	bodies := map[string]bool{}
	for _, body := range box.bodies() {
		bodies[body] = true
	}
	return bodies
}

func (box *inbox) await(t *testing.T, count int) []*primitive.MessageExt {
	t.Helper()
	await(t, fmt.Sprintf("%d messages", count), func() bool { return len(box.all()) >= count })
	return box.all()
}

func (box *inbox) listen(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	box.add(messages...)
	return consumer.ConsumeSuccess, nil
}

type listener = func(context.Context, ...*primitive.MessageExt) (consumer.ConsumeResult, error)

func startPush(t *testing.T, group, topic, tags string, listen listener, options ...consumer.Option) rocketmq.PushConsumer {
	t.Helper()
	options = append([]consumer.Option{
		consumer.WithNsResolver(resolver(t)),
		consumer.WithGroupName(group),
		consumer.WithInstance(unique(t, "instance")),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	}, options...)
	created, err := rocketmq.NewPushConsumer(options...)
	must(t, err)
	must(t, created.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: tags}, listen))
	must(t, created.Start())
	t.Cleanup(func() { _ = created.Shutdown() })
	return created
}

// restart runs the runner's command that ends the broker and starts it again; skips the test where there is none.
func restart(t *testing.T, variable string) {
	t.Helper()
	command := os.Getenv(variable)
	if command == "" {
		t.Skipf("set %s to a command that restarts the broker", variable)
	}
	output, err := exec.Command("sh", "-c", command).CombinedOutput()
	if err != nil {
		t.Fatalf("restart by %q: %v: %s", command, err, output)
	}
}

// logLevel is how much the client says in the log of the run: errors, or what E2E_GO_LOG asks for.
func logLevel() string {
	if level := os.Getenv("E2E_GO_LOG"); level != "" {
		return level
	}
	return "error"
}
