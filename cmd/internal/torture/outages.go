package torture

import (
	"sync"
	"time"
)

// outages measures how long nothing could be published to the main stream.
type outages struct {
	mu      sync.Mutex
	last    int64 // the last success
	quorum  bool  // a majority of the servers is able to work
	since   int64 // since then
	cause   string
	excused bool          // a stream may be unavailable although a majority works
	beat    int64         // when this process was last seen running
	stalled time.Duration // how long it did not
	longest int64
	during  string
	byKind  map[string]int64
}

func newOutages() *outages { return &outages{byKind: map[string]int64{}} }

// success notes that something was published at the time.
func (o *outages) success(at int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.close(at)
	o.last = max(o.last, at)
}

// close takes the time from the last success until at as an outage. The lock is held.
func (o *outages) close(at int64) {
	late := o.beat != 0 && time.Duration(at-o.beat) > pulseMax
	if !o.quorum || o.excused || o.last == 0 || late {
		return
	}
	gap := at - max(o.last, o.since)
	o.byKind[o.cause] = max(o.byKind[o.cause], gap)
	if gap > o.longest {
		o.longest, o.during = gap, o.cause
	}
}

// change notes that a fault of a kind begins or has ended, and whether a majority is able to work from now on.
func (o *outages) change(at int64, quorum bool, cause string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.close(at)
	if quorum != o.quorum || o.cause != cause {
		o.since = at
	}
	o.quorum, o.cause = quorum, cause
}

// excuse notes that from now on an outage is nobody's fault, or is again.
func (o *outages) excuse(at int64, on bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.close(at)
	o.excused, o.since = on, at
}

// alive notes that this process runs, and that it did not for the time before that if that is long: then what is measured
// from the last success on says nothing.
func (o *outages) alive(at int64, gap time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.beat = at
	if gap > pulseMax {
		o.stalled += gap
		o.since = at
	}
}
