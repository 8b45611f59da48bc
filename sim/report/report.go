// Package report draws a run for a person: one self-contained HTML page with a timeline.
//
// It promises a page that needs nothing from anywhere else. It does not judge.
package report

import (
	"fmt"
	"html"
	"strings"

	"weir/linearizability/history"
	"weir/sim"
	"weir/sim/plan"
	"weir/sim/trace"
)

// Geometry of the drawing in pixels.
const (
	widthPixels  = 1600
	lanePixels   = 18
	labelPixels  = 130
	headerPixels = 24
)

// page is a drawing under way.
type page struct {
	result *sim.Result
	body   strings.Builder
	lanes  []string
	end    int64
}

// HTML returns the page of a run whose trace was kept.
func HTML(result *sim.Result) []byte {
	p := &page{result: result, end: max(result.VirtualNanos, 1)}
	p.machines()
	p.leaders()
	p.faults()
	p.disk()
	p.operations()
	p.consumers()
	p.findings()
	var out strings.Builder
	fmt.Fprintf(&out, `<!doctype html><html><head><meta charset="utf-8"><title>seed %d</title><style>
body{font:13px system-ui,sans-serif;margin:16px;background:#fff;color:#222}
pre{background:#f6f6f6;padding:8px;white-space:pre-wrap}
.box{overflow-x:auto;border:1px solid #ccc}
rect:hover{stroke:#000}
</style></head><body><h1>seed %d%s</h1><p>%s</p><p>hash %016x, %d events, %s of virtual time</p>`,
		result.Plan.Seed, result.Plan.Seed, plantText(result.Plan), p.summary(), result.Hash, result.Events, clock(result.VirtualNanos))
	out.WriteString(`<p>zoom <input type="range" min="1" max="40" value="1" oninput="z(this.value)"></p><div class="box">`)
	height := headerPixels + lanePixels*len(p.lanes)
	fmt.Fprintf(&out, `<svg id="t" width="%d" height="%d" viewBox="0 0 %d %d" preserveAspectRatio="none">`,
		labelPixels+widthPixels, height, labelPixels+widthPixels, height)
	for i, label := range p.lanes {
		fmt.Fprintf(&out, `<text x="2" y="%d" font-size="11">%s</text>`, headerPixels+lanePixels*i+13, html.EscapeString(label))
	}
	out.WriteString(p.body.String())
	out.WriteString(`</svg></div><script>function z(f){var s=document.getElementById("t");s.setAttribute("width",`)
	fmt.Fprintf(&out, "%d*f)}</script>", labelPixels+widthPixels)
	fmt.Fprintf(&out, "<h2>plan</h2><pre>%s</pre><h2>log</h2><pre>%s</pre></body></html>\n",
		html.EscapeString(string(result.Plan.Encode())), html.EscapeString(p.log()))
	return []byte(out.String())
}

func plantText(p *plan.Plan) string {
	if p.Plant == "" {
		return ""
	}
	return " with the planted fault " + html.EscapeString(p.Plant)
}

func clock(nanos int64) string {
	return fmt.Sprintf("%d.%06d s", nanos/1_000_000_000, nanos%1_000_000_000/1000)
}

func (p *page) summary() string {
	if len(p.result.Findings) == 0 {
		return "passed"
	}
	text := ""
	for i := range p.result.Findings {
		f := &p.result.Findings[i]
		text += fmt.Sprintf("<b>%s</b> at %s: %s<br>", html.EscapeString(f.Class), clock(f.At), html.EscapeString(f.Detail))
	}
	return text
}

// lane adds a lane and returns its number.
func (p *page) lane(label string) int {
	p.lanes = append(p.lanes, label)
	return len(p.lanes) - 1
}

// x is the pixel of a time.
func (p *page) x(at int64) int64 {
	return labelPixels + min(max(at, 0), p.end)/1000*widthPixels/(p.end/1000+1)
}

// span is an interval on a lane.
type span struct {
	lane     int
	from, to int64
}

// bar draws an interval.
func (p *page) bar(s span, colour, title string) {
	left := p.x(s.from)
	fmt.Fprintf(&p.body, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"><title>%s</title></rect>`,
		left, headerPixels+lanePixels*s.lane+3, max(p.x(s.to)-left, 2), lanePixels-6, colour, html.EscapeString(title))
}

func (p *page) faults() {
	lane := p.lane("faults")
	for i := range p.result.Plan.Faults {
		f := &p.result.Plan.Faults[i]
		p.bar(span{lane, f.AtMillis * 1_000_000, (f.AtMillis + f.DurMillis) * 1_000_000}, "#e88",
			fmt.Sprintf("%d: %s %s %s for %d ms, n %d, nodes %b, leader of group %d", i, f.Kind, f.Disk, f.On, f.DurMillis, f.N, f.Nodes, f.Leads))
	}
}

// operations draws what every client asked for, coloured by the outcome.
func (p *page) operations() {
	colours := map[history.Outcome]string{history.OK: "#6b6", history.Rejected: "#db4", history.Unknown: "#bbb"}
	lanes := map[int]int{}
	records := p.result.Seen.History.Records
	for i := range records {
		r := &records[i]
		lane, known := lanes[r.Client]
		if !known {
			lane = p.lane(fmt.Sprintf("client %d", r.Client))
			lanes[r.Client] = lane
		}
		title := fmt.Sprintf("#%d %s %s %s at %d -> seq %d value #%d code %d duplicate %v [%s, ",
			r.ID, r.Kind, r.Stream, r.Subject, r.At, r.Seq, r.Value, r.Code, r.Duplicate, clock(r.Call))
		to := r.Return
		if r.Outcome == history.Unknown {
			to = r.Call + 1
			title += "unknown)"
		} else {
			title += clock(r.Return) + "]"
		}
		p.bar(span{lane, r.Call, to}, colours[r.Outcome], title)
	}
}

// consumers draws deliveries, and their answers when they were confirmed.
func (p *page) consumers() {
	lanes := make([]int, len(p.result.Plan.Consumers))
	for i := range lanes {
		lanes[i] = p.lane("consumer " + p.result.Plan.Consumers[i].Name)
	}
	for i := range p.result.Seen.Deliveries {
		d := &p.result.Seen.Deliveries[i]
		p.bar(span{lanes[d.Consumer], d.At, d.At}, "#c6c", fmt.Sprintf("seq %d, consumer seq %d, delivery %d, pending %d, asked %s, at %s",
			d.StreamSeq, d.ConsumerSeq, d.Count, d.Pending, clock(d.Asked), clock(d.At)))
	}
	for i := range p.result.Seen.Acks {
		a := &p.result.Seen.Acks[i]
		if a.Return != history.Never {
			d := &p.result.Seen.Deliveries[a.Delivery]
			p.bar(span{lanes[a.Consumer], a.Call, a.Return}, "#6bb", fmt.Sprintf("answer %d to seq %d delivery %d", a.Kind, d.StreamSeq, d.Count))
		}
	}
}

// findings marks the times of what was wrong.
func (p *page) findings() {
	for i := range p.result.Findings {
		f := &p.result.Findings[i]
		if f.At == 0 {
			continue
		}
		fmt.Fprintf(&p.body, `<line x1="%d" x2="%d" y1="0" y2="%d" stroke="#f00"><title>%s</title></line>`,
			p.x(f.At), p.x(f.At), headerPixels+lanePixels*len(p.lanes), html.EscapeString(f.Class+": "+f.Detail))
	}
}

// logLinesMax bounds the text below the drawing.
const logLinesMax = 5000

// log lists what the node and the clients did, without the bytes.
func (p *page) log() string {
	var b strings.Builder
	lines := 0
	for i := range p.result.Trace.Records {
		r := &p.result.Trace.Records[i]
		text := r.Text
		switch r.Code {
		case trace.ToNode, trace.ToClient, trace.Woke, trace.DiskStart, trace.DiskEnd, trace.Digest, trace.ToPeer, trace.FromPeer:
			continue
		}
		if lines++; lines > logLinesMax {
			b.WriteString("...\n")
			break
		}
		fmt.Fprintf(&b, "%s %s %d %d %s\n", clock(r.At), r.Code, r.A, r.B, text)
	}
	return b.String()
}
