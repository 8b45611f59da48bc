package api

import (
	"slices"

	"weir/model/jsapi"
	"weir/model/meta"
)

// streamStepDown answers STREAM.LEADER.STEPDOWN.
func (c *call) streamStepDown(body []byte) {
	if !c.api.clustered() {
		c.clusterOnly(body)
		return
	}
	c.lookup(func(entry *meta.Stream) { c.stepDown(entry.Group, body) })
}

// consumerStepDown answers CONSUMER.LEADER.STEPDOWN: a consumer is led by whoever leads its stream.
func (c *call) consumerStepDown(body []byte) {
	if !c.api.clustered() {
		c.clusterOnly(body)
		return
	}
	body = slices.Clone(body)
	c.withStream(func(entry *meta.Stream, s Stream) {
		if s.ConsumerByName(c.consumer) == nil {
			c.refuse(jsapi.CodeConsumerNotFound.Err())
			return
		}
		c.stepDown(entry.Group, body)
	})
}

// metaStepDown answers META.LEADER.STEPDOWN.
func (c *call) metaStepDown(body []byte) { c.stepDown(meta.Group, body) }

// stepDown moves the leadership of the group. A group of one replica has nobody else to lead it, and stays.
func (c *call) stepDown(group uint64, body []byte) {
	var request jsapi.StepDownRequest
	if !c.decodeOptional(body, &request) {
		return
	}
	members := c.backend.Members(group)
	if len(members.Replicas) == 0 {
		c.succeed()
		return
	}
	to, err := c.successor(members, request.Placement)
	if err != nil {
		c.refuse(err)
		return
	}
	c.backend.StepDown(group, to, func(err *jsapi.Error) {
		if err != nil {
			c.refuse(err)
			return
		}
		c.succeed()
	})
}

func (c *call) succeed() { c.respond(jsapi.SuccessResponse{Response: c.response(), Success: true}) }

// successor returns the name of the server that shall lead, "" when all are equally good.
func (c *call) successor(members *jsapi.ClusterInfo, wish *jsapi.Placement) (string, *jsapi.Error) {
	if wish != nil && wish.Preferred != "" {
		if wish.Preferred == members.Leader {
			return "", jsapi.CodeClusterNoPeers.With(`preferred server "` + wish.Preferred + `" is already leader`)
		}
		known := slices.ContainsFunc(members.Replicas, func(p *jsapi.PeerInfo) bool { return p.Name == wish.Preferred })
		if !known {
			return "", jsapi.CodeClusterNoPeers.With(`preferred server "` + wish.Preferred + `" not known`)
		}
		return wish.Preferred, nil
	}
	var suited []string
	free := wish == nil || wish.Cluster == "" && len(wish.Tags) == 0
	for _, p := range members.Replicas {
		if p.Offline || !free && !c.suited(p.Name, wish) {
			continue
		}
		suited = append(suited, p.Name)
	}
	switch {
	case len(suited) == 0:
		return "", jsapi.CodeClusterNoPeers.With("no replacement peer connected")
	case free:
		return "", nil
	}
	return suited[c.backend.Random()%uint64(len(suited))], nil
}

// suited reports whether the server is one that the request wishes for.
func (c *call) suited(name string, wish *jsapi.Placement) bool {
	server := c.backend.Catalog().ServerNamed(name)
	if server == nil || wish.Cluster != "" && wish.Cluster != server.Cluster {
		return false
	}
	for _, tag := range wish.Tags {
		if !slices.Contains(server.Tags, tag) {
			return false
		}
	}
	return true
}
