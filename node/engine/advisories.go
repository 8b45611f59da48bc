package engine

import (
	"weir/model/effect"
	"weir/model/jsapi"
)

// advise publishes the advisory or metric that an effect of a consumer stands for, if anybody listens. Only the leader
// advises, and only about what happened while it led.
func (e *Engine) advise(g *group, f *effect.Effect) {
	switch f.Kind {
	case effect.ConsumerCreated:
		e.api.ConsumerCreated(g.entry.Account, g.entry.Name, f.Text)
		return
	case effect.ConsumerDeleted:
		e.api.ConsumerDeleted(g.entry.Account, g.entry.Name, f.Text)
		return
	}
	consumer := g.stream.Consumer(f.Consumer)
	if consumer == nil {
		return
	}
	name := consumer.Name()
	tail := g.entry.Name + "." + name
	switch f.Kind {
	case effect.MaxDeliveries:
		e.publishEvent(g.account, jsapi.SubjectConsumerMaxDeliver+tail, func(event jsapi.Event) any {
			event.Type = jsapi.TypeMaxDeliver
			return jsapi.MaxDeliverEvent{
				Event: event, Stream: g.entry.Name, Consumer: name, StreamSeq: f.Seq, Deliveries: f.Deliveries,
			}
		})
	case effect.Naked:
		e.publishEvent(g.account, jsapi.SubjectConsumerNaked+tail, func(event jsapi.Event) any {
			event.Type = jsapi.TypeNaked
			return e.deliveryEvent(event, g, f, name)
		})
	case effect.Terminated:
		e.publishEvent(g.account, jsapi.SubjectConsumerTerminated+tail, func(event jsapi.Event) any {
			event.Type = jsapi.TypeTerminated
			return e.deliveryEvent(event, g, f, name)
		})
	case effect.Acked:
		e.publishEvent(g.account, jsapi.SubjectConsumerAck+tail, func(event jsapi.Event) any {
			event.Type = jsapi.TypeConsumerAck
			return jsapi.ConsumerAckEvent{
				Event: event, Stream: g.entry.Name, Consumer: name, ConsumerSeq: f.ConsumerSeq, StreamSeq: f.Seq,
				Delay: int64(f.N), Deliveries: f.Deliveries,
			}
		})
	}
}

func (e *Engine) deliveryEvent(event jsapi.Event, g *group, f *effect.Effect, consumer string) jsapi.DeliveryEvent {
	return jsapi.DeliveryEvent{
		Event: event, Stream: g.entry.Name, Consumer: consumer, ConsumerSeq: f.ConsumerSeq, StreamSeq: f.Seq,
		Deliveries: f.Deliveries, Reason: f.Text,
	}
}

// publishEvent publishes an event if anybody listens.
func (e *Engine) publishEvent(a *account, subject string, build func(jsapi.Event) any) {
	to := []byte(subject)
	if !a.routes.HasInterest(to) {
		return
	}
	event := jsapi.Event{ID: jsapi.EventID(e.random.Uint64(), e.random.Uint64()), Time: jsapi.Time(e.wall)}
	a.send(to, nil, jsapi.AppendJSON(nil, build(event)))
}
