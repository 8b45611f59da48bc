package verdict

import (
	"weir/sim/plan"
	"weir/sim/workload"
)

// descriptions: what is read of a stream's description is what an update wrote that was not refused, that was called
// before the read ended, and after which no other update was called and confirmed before the read began.
func descriptions(p *plan.Plan, o *workload.Observations) []Finding {
	var found []Finding
	for i := range o.Descriptions {
		d := &o.Descriptions[i]
		wrote := workload.Update{Stream: d.Stream} // the creation, without a description
		known := d.Text == ""
		for j := range o.Updates {
			if u := &o.Updates[j]; u.Stream == d.Stream && u.Text == d.Text && !u.Refused && u.Call <= d.Return {
				wrote, known = *u, true
			}
		}
		if !known {
			found = append(found, Finding{Class: "update", At: d.Return, Detail: sprintf("%s has the description %q, which nobody gave it",
				p.Streams[d.Stream].Name, d.Text)})
			continue
		}
		for j := range o.Updates {
			u := &o.Updates[j]
			if u.Stream == d.Stream && !u.Refused && u.Call > wrote.Return && u.Return < d.Call {
				found = append(found, Finding{Class: "update", At: d.Return, Detail: sprintf("%s has the description %q, after %q was confirmed",
					p.Streams[d.Stream].Name, d.Text, u.Text)})
				break
			}
		}
	}
	return found
}
