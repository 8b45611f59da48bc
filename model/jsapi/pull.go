package jsapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Statuses that end or accompany a pull request or a direct get. Clients compare code and text.
const (
	StatusIdleHeartbeat     = "100 Idle Heartbeat"
	StatusFlowControl       = "100 FlowControl Request"
	StatusEndOfBatch        = "204 EOB"
	StatusNoMessages        = "404 No Messages"
	StatusMessageNotFound   = "404 Message Not Found"
	StatusNoResults         = "404 No Results"
	StatusRequestTimeout    = "408 Request Timeout"
	StatusRequestsPending   = "408 Requests Pending"
	StatusEmptyRequest      = "408 Empty Request"
	StatusBadRequest        = "408 Bad Request"
	StatusMalformedRequest  = "408 Malformed Request"
	StatusMaxWaiting        = "409 Exceeded MaxWaiting"
	StatusSizeExceeded      = "409 Message Size Exceeds MaxBytes"
	StatusBatchCompleted    = "409 Batch Completed"
	StatusConsumerDeleted   = "409 Consumer Deleted"
	StatusLeadershipChange  = "409 Leadership Change"
	StatusServerShutdown    = "409 Server Shutdown"
	StatusPushBased         = "409 Consumer is push based"
	StatusRequiredAPILevel  = "412 Required Api Level"
	StatusTooManyResults    = "413 Too Many Results"
	statusBadPull           = "400 Bad Request - "
	statusHeartbeatTooLarge = statusBadPull + "heartbeat value too large"
	statusNotOverflow       = statusBadPull + "Not a Overflow Priority consumer"
	statusNotPinned         = statusBadPull + "Not a Pinned Client Priority consumer"
	statusPriorityRange     = statusBadPull + "Priority must be between 0 and 9"
	statusGroupMissing      = statusBadPull + "Priority Group missing"
)

const priorityMax = 9

// ParsePull reads the body of CONSUMER.MSG.NEXT: empty, a batch size, or a JSON object; any other text asks for one
// message. A status that is not empty refuses the request. A batch below one becomes one.
func ParsePull(body []byte) (r PullRequest, status string) {
	body = bytes.TrimSpace(body)
	switch {
	case len(body) == 0:
	case body[0] == '{':
		if err := json.Unmarshal(body, &r); err != nil {
			return PullRequest{}, statusBadPull + err.Error()
		}
		if r.IdleHeartbeat > 0 && r.IdleHeartbeat > r.Expires/2 {
			return PullRequest{}, statusHeartbeatTooLarge
		}
	default:
		if n, err := strconv.Atoi(string(body)); err == nil {
			r.Batch = n
		}
	}
	r.Batch = max(r.Batch, 1)
	r.MaxBytes = max(r.MaxBytes, 0)
	r.IdleHeartbeat = max(r.IdleHeartbeat, 0)
	return r, ""
}

// Check holds the request against the limits of the consumer. A status that is not empty refuses it.
func (r *PullRequest) Check(config *ConsumerConfig) (status string) {
	switch {
	case config.Push():
		return StatusPushBased
	case config.MaxBatch > 0 && r.Batch > config.MaxBatch:
		return fmt.Sprintf("409 Exceeded MaxRequestBatch of %d", config.MaxBatch)
	case config.MaxExpires > 0 && r.Expires > config.MaxExpires:
		return fmt.Sprintf("409 Exceeded MaxRequestExpires of %v", config.MaxExpires)
	case config.MaxBytes > 0 && r.MaxBytes > config.MaxBytes:
		return fmt.Sprintf("409 Exceeded MaxRequestMaxBytes of %d", config.MaxBytes)
	case (r.MinPending != 0 || r.MinAckPending != 0) && config.PriorityPolicy != PriorityOverflow:
		return statusNotOverflow
	case r.ID != "" && config.PriorityPolicy != PriorityPinnedClient:
		return statusNotPinned
	case r.Priority < 0 || r.Priority > priorityMax:
		return statusPriorityRange
	case config.PriorityPolicy != PriorityNone && r.Group == "":
		return statusGroupMissing
	}
	return ""
}

// ExpiresAt returns the instant at which the request times out when it arrived at now, both unix nanoseconds; 0 means
// never. A negative lifetime has passed at once.
func (r *PullRequest) ExpiresAt(now int64) int64 {
	if r.Expires == 0 {
		return 0
	}
	expires := int64(max(r.Expires, -time.Nanosecond))
	if expires > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + expires
}
