package torture

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Bounds of the lives of a stream.
const (
	// livesMessages is how many messages a life holds, livesEvery the pause between two lives.
	livesMessages = 15
	livesEvery    = 2 * time.Second
)

// noPeers is the error code of a stream for which there are not enough servers.
const noPeers = 10005

// errAgain says that an outcome is not known.
var errAgain = errors.New("the outcome is not known")

// life is one life of a stream that one client alone knows.
type life struct {
	name string
	// number counts the lives, all of them; doubt says that something of this life may still take effect: then the name is
	// not used again.
	number int
	doubt  bool
}

// lives creates a stream, fills it, looks at it, deletes it, and begins anew, often under the same name. Its only client
// knows what every answer has to be.
func (c *client) lives(ctx context.Context) {
	names := 0
	l := life{name: "L0", doubt: false}
	for ctx.Err() == nil {
		l.number++
		if err := c.live(ctx, &l); err != nil && ctx.Err() == nil {
			c.run.wrong("%s, life %d: %v", l.name, l.number, err)
			l.doubt = true
		}
		if l.doubt {
			names++
			l.name, l.doubt = fmt.Sprintf("L%d", names), false
		}
		if c.refresh(false) != nil || !wait(ctx, livesEvery) {
			return
		}
	}
}

// live is one life. The error says what was wrong.
func (c *client) live(ctx context.Context, l *life) error {
	config := jetstream.StreamConfig{
		Name: l.name, Subjects: []string{l.name + ".>"}, Replicas: c.run.options.usual(), Duplicates: duplicateWindow,
		Description: fmt.Sprintf("life %d", l.number),
	}
	var created jetstream.StreamInfo
	if err := c.insist(ctx, l, call{"STREAM.CREATE." + l.name, &config, &created}); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if created.State.LastSeq != 0 || created.State.Msgs != 0 {
		return fmt.Errorf("the new stream has the state %+v", created.State)
	}
	for i := range livesMessages {
		id := fmt.Sprintf("%s-%d-%d", l.name, l.number, i)
		for {
			if ctx.Err() != nil {
				return nil
			}
			limit, cancel := context.WithTimeout(ctx, answerMax)
			ack, err := c.js.Publish(limit, l.name+".x", []byte(id), jetstream.WithMsgID(id))
			cancel()
			var refused jetstream.JetStreamError
			if errors.As(err, &refused) && refused.APIError() != nil && decides(refused.APIError()) {
				return fmt.Errorf("message %d was refused: %w", i, err)
			}
			if err != nil {
				l.doubt = true
				_ = c.connect() // what is wrong with it shows at its next use
				continue
			}
			if ack.Sequence != uint64(i+1) {
				return fmt.Errorf("message %d got the sequence %d, duplicate %v", i, ack.Sequence, ack.Duplicate)
			}
			break
		}
	}
	var info jetstream.StreamInfo
	if err := c.insist(ctx, l, call{"STREAM.INFO." + l.name, nil, &info}); err != nil {
		return fmt.Errorf("info: %w", err)
	}
	if info.State.Msgs != livesMessages || info.State.LastSeq != livesMessages || info.Config.Description != config.Description {
		return fmt.Errorf("after %d messages its state is %+v, its description %q", livesMessages, info.State, info.Config.Description)
	}
	err := c.insist(ctx, l, call{"STREAM.DELETE." + l.name, nil, nil})
	if gone := notFound(err); err != nil && !(gone && l.doubt) {
		return fmt.Errorf("delete: %w", err)
	}
	if err := c.insist(ctx, l, call{"STREAM.INFO." + l.name, nil, nil}); !notFound(err) && ctx.Err() == nil {
		return fmt.Errorf("after its deletion the stream's info says %w", errors.Join(err, errAgain))
	}
	return nil
}

// insist sends an API request until an answer decides. What the connection or the cluster could not tell is asked again.
func (c *client) insist(ctx context.Context, l *life, request call) error {
	for {
		limit, cancel := context.WithTimeout(ctx, answerMax)
		err := ask(limit, c.nc, request)
		cancel()
		var api *jetstream.APIError
		refused := errors.As(err, &api)
		if refused && api.ErrorCode == noPeers && wait(ctx, retryEvery) {
			continue // servers are away, and it was not done
		}
		if err == nil || ctx.Err() != nil || refused && decides(api) {
			return err
		}
		l.doubt = true
		if !wait(ctx, retryEvery) {
			return nil
		}
		_ = c.connect() // what is wrong with it shows at its next use
	}
}

// notFound says whether an error is that there is no such stream.
func notFound(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamNotFound
}
