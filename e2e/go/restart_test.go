package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

func TestOrderlyRestartInTheMiddle(t *testing.T) {
	sendAcross(t, "RESTART_BROKER_CMD")
}

func TestKillInTheMiddle(t *testing.T) {
	sendAcross(t, "KILL_BROKER_CMD")
}

// A producer and a consumer work while the broker goes away and comes back; nothing acknowledged may be lost.
func sendAcross(t *testing.T, variable string) {
	topic := newTopic(t, 4)
	box := &inbox{}
	startPush(t, unique(t, "group"), topic, "*", box.listen)
	p := newProducer(t, producer.WithSendMsgTimeout(2*time.Second))

	var mutex sync.Mutex
	acknowledged := map[string]bool{}
	size := func() int {
		mutex.Lock()
		defer mutex.Unlock()
		return len(acknowledged)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			body := fmt.Sprintf("m%d", i)
			result, err := p.SendSync(context.Background(), message(topic, body))
			if err == nil && result.Status == primitive.SendOK {
				mutex.Lock()
				acknowledged[body] = true
				mutex.Unlock()
			}
		}
	}()
	defer func() {
		close(stop)
		<-stopped
		await(t, "every acknowledged message", func() bool {
			got := box.distinct()
			mutex.Lock()
			defer mutex.Unlock()
			for body := range acknowledged {
				if !got[body] {
					return false
				}
			}
			return true
		})
	}()
	await(t, "messages before the restart", func() bool { return size() >= count })
	restart(t, variable)
	then := size()
	await(t, "messages after the restart", func() bool { return size() >= then+count })
}
