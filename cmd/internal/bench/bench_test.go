package bench

import (
	"strings"
	"testing"
	"time"
)

func TestRatioIsAboveOneWhenWeirIsBetter(t *testing.T) {
	two, four := 2.0, 4.0
	if r := ratio(&four, &two, true); *r != 2 {
		t.Errorf("4 op/s against 2 gives %v", *r)
	}
	if r := ratio(&two, &four, false); *r != 2 {
		t.Errorf("2 ms against 4 gives %v", *r)
	}
	if ratio(nil, &two, true) != nil || ratio(&two, nil, true) != nil {
		t.Error("a missing figure gives a ratio")
	}
}

func TestMedianOfRounds(t *testing.T) {
	samples := []sample{{{value: 9}}, {{value: 1}}, {{value: 5}}}
	if m := median(samples, 0, false); *m != 5 {
		t.Errorf("median of 9, 1, 5 is %v", *m)
	}
	if m := median(samples[:2], 0, false); *m != 1 {
		t.Errorf("the lower of two middle values of 9, 1 is %v", *m)
	}
	if median(nil, 0, false) != nil || median(samples, 0, true) != nil {
		t.Error("nothing measured gives a median")
	}
}

func TestWorksAreChosenByName(t *testing.T) {
	chosen, err := choose([]string{kvGet, publishAsync}, works)
	if err != nil || len(chosen) != 2 || chosen[0].name != publishAsync {
		t.Errorf("chosen %v: %v", chosen, err)
	}
	if _, err := choose([]string{"nothing"}, clusterWorks); err == nil || !strings.Contains(err.Error(), kvGet) {
		t.Errorf("an unknown name gave %v", err)
	}
}

func TestRowsOfTheTable(t *testing.T) {
	w := work{name: publishSync1, targets: map[string]string{publishSync1: "goal"}}
	var samples [columnCount][]sample
	samples[weirColumn] = []sample{{{work: publishSync1, unit: "op/s", value: 300, cpu: 7}}}
	samples[alwaysColumn] = []sample{{{work: publishSync1, unit: "op/s", value: 100}}}
	rows := rowsOf(w, samples)
	bare := 150.0
	rows = append(rows, Row{Work: bareAppend, Weir: &bare})
	compareBare(rows)
	if r := rows[0]; *r.Weir != 300 || r.PeerDefault != nil || *r.RatioAlways != 3 || *r.RatioBare != 2 || *r.WeirCPU != 7 {
		t.Errorf("got %+v", r)
	}
	var out strings.Builder
	if err := WriteTable(&out, rows); err != nil || !strings.Contains(out.String(), "goal (bare 2.00)") {
		t.Errorf("table is\n%s", out.String())
	}
}

func TestBareLoopsCountAtLeastOneSync(t *testing.T) {
	for _, loop := range []func(string, time.Duration) (float64, error){loopAppend, loopFilled} {
		if rate, err := loop(t.TempDir(), 1); err != nil || rate <= 0 {
			t.Errorf("%v syncs a second: %v", rate, err)
		}
	}
}

func TestFigureThatOneServerLacksIsNoRatio(t *testing.T) {
	var samples [columnCount][]sample
	samples[weirColumn] = []sample{{{work: publishSync1, unit: "op/s", value: 2}, {work: bareAppend, unit: "op/s", value: 4}}}
	samples[defaultColumn] = []sample{{{work: publishSync1, unit: "op/s", value: 1}}}
	rows := rowsOf(work{}, samples)
	if len(rows) != 2 || *rows[0].RatioDefault != 2 || rows[1].PeerDefault != nil || rows[1].RatioDefault != nil || *rows[1].Weir != 4 {
		t.Errorf("rows are %+v", rows)
	}
}
